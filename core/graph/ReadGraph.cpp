//===- ReadGraph.cpp - monarch.graph/1, read ------------------------------===//
//
// Refuses unknown majors, unknown keys and wrong types, with the place in the
// document, and verifies what it read.
//
//===----------------------------------------------------------------------===//
#include "core/graph/Graph.h"
#include "core/graph/GraphFormat.h"
#include "core/support/Json.h"

#include <fmt/format.h>

#include <limits>

namespace monarch {

namespace {

constexpr const char *HowToWrite =
    "write it with 'monarch-plan inspect MODEL --emit graph'";

int32_t readId(const JsonValue &json) {
  return static_cast<int32_t>(
      json.integer(None, std::numeric_limits<int32_t>::max()));
}

std::vector<int32_t> readIds(const JsonValue &json) {
  std::vector<int32_t> ids;
  for (const JsonValue &element : json.elements())
    ids.push_back(readId(element));
  return ids;
}

DType readType(const JsonValue &json) {
  if (auto type = parseDType(json.string()))
    return *type;
  json.fail("an unknown element type");
  return DType::Float32;
}

/// A number, or {"float": "inf"} where JSON has none.
double readNumber(const JsonValue &json) {
  return json.isObject() ? json["float"].real() : json.number();
}

Arg readTagged(const JsonValue &json) {
  auto fields = json.fields();
  if (fields.size() != 1) {
    json.fail("an unknown argument");
    return {};
  }
  const auto &[tag, value] = fields.front();
  if (tag == "float")
    return readNumber(json);
  if (tag == "operand")
    return OperandArg{readId(value)};
  if (tag == "operands")
    return OperandListArg{readIds(value)};
  if (tag == "ints")
    return value.integers();
  if (tag == "dtype")
    return readType(value);
  if (tag == "sizes_of")
    return ResultSizes{readId(value)};
  if (tag == "sizes_along")
    return ResultsSizes{readId(value)};
  if (tag == "size_of") {
    const auto pair = value.elements(2);
    return pair.size() == 2 ? ResultSize{readId(pair[0]), readId(pair[1])}
                            : ResultSize{};
  }
  if (tag == "floats") {
    std::vector<double> list;
    for (const JsonValue &element : value.elements())
      list.push_back(readNumber(element));
    return list;
  }
  if (tag == "bools") {
    std::vector<bool> list;
    for (const JsonValue &element : value.elements())
      list.push_back(element.boolean());
    return list;
  }
  value.fail("an unknown argument");
  return {};
}

Arg readArg(const JsonValue &json) {
  if (json.isNull())
    return std::monostate{};
  if (json.isBoolean())
    return json.boolean();
  if (json.isInteger())
    return json.integer();
  if (json.isNumber())
    return json.number();
  if (json.isString())
    return json.string();
  return readTagged(json);
}

Value readValue(const JsonValue &json) {
  json.refuseFieldsBeside(
      {"kind", "name", "type", "shape", "batch", "cotangent_of"});
  Value value;
  const std::string kind = json["kind"].string();
  size_t index = 0;
  while (index < ValueKindNames.size() && ValueKindNames[index] != kind)
    ++index;
  if (index == ValueKindNames.size())
    json["kind"].fail("an unknown kind of value");
  else
    value.kind = static_cast<ValueKind>(index);
  if (auto name = json.find("name"))
    value.name = name->string();
  value.type = readType(json["type"]);
  value.shape = json["shape"].integers();
  value.batch.assign(value.shape.size(), 0);
  if (auto batch = json.find("batch"))
    value.batch = batch->integers();
  if (auto values = json.find("cotangent_of"))
    value.cotangentOf = readIds(*values);
  return value;
}

Op readOp(const JsonValue &json) {
  json.refuseFieldsBeside({"op", "operands", "args", "results", "phase",
                           "forward", "module", "source"});
  Op op;
  op.name = json["op"].string();
  op.operands = readIds(json["operands"]);
  for (const JsonValue &arg : json["args"].elements())
    op.args.push_back(readArg(arg));
  op.results = readIds(json["results"]);
  if (auto phase = json.find("phase")) {
    if (phase->string() != "backward")
      phase->fail("an unknown phase");
    op.phase = Phase::Backward;
  }
  if (auto forward = json.find("forward"))
    op.forward = readId(*forward);
  if (auto module = json.find("module"))
    op.module = module->string();
  if (auto source = json.find("source"))
    op.source = source->string();
  return op;
}

Storage readStorage(const JsonValue &json) {
  json.refuseFieldsBeside({"record", "offset_bytes", "strides"});
  return {json["record"].string(), json["offset_bytes"].integer(),
          json["strides"].integers()};
}

Parameter readParameter(const JsonValue &json) {
  json.refuseFieldsBeside(
      {"value", "names", "trainable", "storage", "gradients"});
  return {readId(json["value"]), json["names"].strings(),
          json["trainable"].boolean(), readStorage(json["storage"]),
          readIds(json["gradients"])};
}

Buffer readBuffer(const JsonValue &json) {
  json.refuseFieldsBeside(
      {"value", "names", "persistent", "storage", "updated"});
  return {readId(json["value"]), json["names"].strings(),
          readStorage(json["storage"]), readId(json["updated"]),
          json["persistent"].boolean()};
}

Input readInput(const JsonValue &json) {
  json.refuseFieldsBeside({"value", "name"});
  return {readId(json["value"]), json["name"].string()};
}

LossCount readCount(const JsonValue &json) {
  json.refuseFieldsBeside(
      {"inverse_count", "target", "ignore_index", "per_unit"});
  return {readId(json["inverse_count"]), readId(json["target"]),
          json["ignore_index"].integer(), json["per_unit"].integer()};
}

template <typename T>
std::vector<T> readList(const JsonValue &json, T (*read)(const JsonValue &)) {
  std::vector<T> list;
  for (const JsonValue &element : json.elements())
    list.push_back(read(element));
  return list;
}

/// A result's op and place are not stored: the op's list of results has them.
void linkResults(const JsonValue &ops, Graph &graph) {
  for (size_t id = 0; id < graph.ops.size(); ++id) {
    const std::vector<ValueId> &results = graph.ops[id].results;
    for (size_t i = 0; i < results.size(); ++i) {
      if (results[i] == None)
        continue;
      if (static_cast<size_t>(results[i]) >= graph.values.size())
        return ops.fail(fmt::format("op {} makes a value that is none", id));
      Value &value = graph.values[results[i]];
      value.producer = static_cast<OpId>(id);
      value.result = static_cast<int>(i);
    }
  }
}

Graph readDocument(const JsonValue &json) {
  json.refuseFieldsBeside({"schema", "unit_rows", "dynamic_batch", "separable",
                           "values", "ops", "parameters", "buffers", "inputs",
                           "constants", "constant_storage", "counts", "loss",
                           "outputs"});
  if (json["schema"].string() != GraphSchema)
    json["schema"].fail(fmt::format("this version reads \"{}\"", GraphSchema));
  Graph graph;
  graph.unitRows = json["unit_rows"].integer();
  graph.dynamicBatch = json["dynamic_batch"].boolean();
  graph.separable = json["separable"].boolean();
  graph.values = readList(json["values"], readValue);
  graph.ops = readList(json["ops"], readOp);
  graph.parameters = readList(json["parameters"], readParameter);
  graph.buffers = readList(json["buffers"], readBuffer);
  graph.inputs = readList(json["inputs"], readInput);
  graph.constants = readIds(json["constants"]);
  graph.constantStorage = readList(json["constant_storage"], readStorage);
  graph.counts = readList(json["counts"], readCount);
  graph.loss = readId(json["loss"]);
  graph.outputs = readIds(json["outputs"]);
  linkResults(json["ops"], graph);
  return graph;
}

} // namespace

Expected<Graph> readGraph(std::string_view text) {
  auto json = parseJson(text, "graph");
  if (!json)
    return json.error();
  JsonDocument document{*json, "graph", "MP1020"};
  document.fix = HowToWrite;
  Graph graph = readDocument(JsonValue(document));
  if (document.error)
    return *document.error;
  if (auto error = verify(graph))
    return *error;
  return graph;
}

} // namespace monarch
