//===- ReadGraph.cpp - monarch.graph/1, read ------------------------------===//
//
// Refuses unknown majors, unknown keys and wrong types, and verifies what it
// read. The JSON library's exceptions end here.
//
//===----------------------------------------------------------------------===//
#include "core/graph/Graph.h"
#include "core/graph/GraphFormat.h"

#include <fmt/format.h>

#include <limits>
#include <stdexcept>

namespace monarch {

namespace {

using Json = nlohmann::json;

Error malformed(std::string what) {
  return {"MP1020", ExitCode::BadInput,
          "not a graph of monarch-plan: " + std::move(what), "",
          "write it with 'monarch-plan inspect MODEL --emit graph'"};
}

/// The keys of one object, each read once; the rest must not exist.
class Fields {
public:
  explicit Fields(const Json &json) : json(json) {
    if (!json.is_object())
      throw std::invalid_argument("expected an object");
  }
  const Json &at(const char *key) {
    ++used;
    return json.at(key);
  }
  template <typename T> T get(const char *key) { return at(key).get<T>(); }
  template <typename T> T get(const char *key, T absent) {
    return json.contains(key) ? get<T>(key) : absent;
  }
  void finish() const {
    if (used != json.size())
      throw std::invalid_argument("unknown key in " + json.dump());
  }

private:
  const Json &json;
  size_t used = 0;
};

double readNumber(const Json &json) {
  if (json.is_number_float())
    return json.get<double>();
  const auto text = Fields(json).get<std::string>("float");
  if (text == "nan")
    return std::numeric_limits<double>::quiet_NaN();
  if (text == "inf" || text == "-inf")
    return std::numeric_limits<double>::infinity() * (text == "inf" ? 1 : -1);
  throw std::invalid_argument("unknown number " + text);
}

DType readType(const Json &json) {
  if (auto type = parseDType(json.get<std::string>()))
    return *type;
  throw std::invalid_argument("unknown element type " + json.dump());
}

Arg readArg(const Json &json) {
  if (json.is_null())
    return std::monostate{};
  if (json.is_boolean())
    return json.get<bool>();
  if (json.is_number_integer())
    return json.get<int64_t>();
  if (json.is_number_float())
    return json.get<double>();
  if (json.is_string())
    return json.get<std::string>();
  if (!json.is_object() || json.size() != 1)
    throw std::invalid_argument("unknown argument " + json.dump());
  const std::string tag = json.begin().key();
  const Json &value = json.begin().value();
  if (tag == "float")
    return readNumber(json);
  if (tag == "operand")
    return OperandArg{value.get<int>()};
  if (tag == "operands")
    return OperandListArg{value.get<std::vector<int>>()};
  if (tag == "ints")
    return value.get<std::vector<int64_t>>();
  if (tag == "bools")
    return value.get<std::vector<bool>>();
  if (tag == "floats") {
    std::vector<double> list;
    for (const Json &element : value)
      list.push_back(readNumber(element));
    return list;
  }
  if (tag == "dtype")
    return readType(value);
  if (tag == "sizes_of")
    return ResultSizes{value.get<int>()};
  if (tag == "size_of" && value.size() == 2)
    return ResultSize{value.at(0).get<int>(), value.at(1).get<int>()};
  if (tag == "sizes_along")
    return ResultsSizes{value.get<int>()};
  throw std::invalid_argument("unknown argument " + json.dump());
}

Value readValue(const Json &json) {
  Fields fields(json);
  Value value;
  const auto kind = fields.get<std::string>("kind");
  size_t index = 0;
  while (index < ValueKindNames.size() && ValueKindNames[index] != kind)
    ++index;
  if (index == ValueKindNames.size())
    throw std::invalid_argument("unknown kind of value " + kind);
  value.kind = static_cast<ValueKind>(index);
  value.name = fields.get<std::string>("name", "");
  value.type = readType(fields.at("type"));
  value.shape = fields.get<std::vector<int64_t>>("shape");
  value.batch = fields.get<std::vector<int64_t>>(
      "batch", std::vector<int64_t>(value.shape.size(), 0));
  value.cotangentOf = fields.get<std::vector<ValueId>>("cotangent_of", {});
  fields.finish();
  return value;
}

Op readOp(const Json &json) {
  Fields fields(json);
  Op op;
  op.name = fields.get<std::string>("op");
  op.operands = fields.get<std::vector<ValueId>>("operands");
  for (const Json &arg : fields.at("args"))
    op.args.push_back(readArg(arg));
  op.results = fields.get<std::vector<ValueId>>("results");
  const auto phase = fields.get<std::string>("phase", "forward");
  if (phase != "forward" && phase != "backward")
    throw std::invalid_argument("unknown phase " + phase);
  op.phase = phase == "forward" ? Phase::Forward : Phase::Backward;
  op.forward = fields.get<OpId>("forward", None);
  op.module = fields.get<std::string>("module", "");
  op.source = fields.get<std::string>("source", "");
  fields.finish();
  return op;
}

Storage readStorage(const Json &json) {
  Fields fields(json);
  Storage storage;
  storage.record = fields.get<std::string>("record");
  storage.offsetBytes = fields.get<int64_t>("offset_bytes");
  storage.strides = fields.get<std::vector<int64_t>>("strides");
  fields.finish();
  return storage;
}

Parameter readParameter(const Json &json) {
  Fields fields(json);
  Parameter parameter;
  parameter.value = fields.get<ValueId>("value");
  parameter.names = fields.get<std::vector<std::string>>("names");
  parameter.trainable = fields.get<bool>("trainable");
  parameter.storage = readStorage(fields.at("storage"));
  parameter.gradients = fields.get<std::vector<ValueId>>("gradients");
  fields.finish();
  return parameter;
}

Buffer readBuffer(const Json &json) {
  Fields fields(json);
  Buffer buffer;
  buffer.value = fields.get<ValueId>("value");
  buffer.names = fields.get<std::vector<std::string>>("names");
  buffer.persistent = fields.get<bool>("persistent");
  buffer.storage = readStorage(fields.at("storage"));
  buffer.updated = fields.get<ValueId>("updated");
  fields.finish();
  return buffer;
}

Input readInput(const Json &json) {
  Fields fields(json);
  Input input;
  input.value = fields.get<ValueId>("value");
  input.name = fields.get<std::string>("name");
  fields.finish();
  return input;
}

LossCount readCount(const Json &json) {
  Fields fields(json);
  LossCount count;
  count.inverseCount = fields.get<ValueId>("inverse_count");
  count.target = fields.get<ValueId>("target");
  count.ignoreIndex = fields.get<int64_t>("ignore_index");
  count.perUnit = fields.get<int64_t>("per_unit");
  fields.finish();
  return count;
}

template <typename T>
std::vector<T> readList(const Json &json, T (*read)(const Json &)) {
  if (!json.is_array())
    throw std::invalid_argument("expected a list");
  std::vector<T> list;
  list.reserve(json.size());
  for (const Json &element : json)
    list.push_back(read(element));
  return list;
}

/// A result's op and place are not stored: the op's list of results has them.
void linkResults(Graph &graph) {
  for (size_t id = 0; id < graph.ops.size(); ++id) {
    const std::vector<ValueId> &results = graph.ops[id].results;
    for (size_t i = 0; i < results.size(); ++i) {
      if (results[i] == None)
        continue;
      Value &value = graph.values.at(results[i]);
      value.producer = static_cast<OpId>(id);
      value.result = static_cast<int>(i);
    }
  }
}

Graph readDocument(const Json &json) {
  Fields fields(json);
  fields.at("schema");
  Graph graph;
  graph.unitRows = fields.get<int64_t>("unit_rows");
  graph.dynamicBatch = fields.get<bool>("dynamic_batch");
  graph.separable = fields.get<bool>("separable");
  graph.values = readList(fields.at("values"), readValue);
  graph.ops = readList(fields.at("ops"), readOp);
  graph.parameters = readList(fields.at("parameters"), readParameter);
  graph.buffers = readList(fields.at("buffers"), readBuffer);
  graph.inputs = readList(fields.at("inputs"), readInput);
  graph.constants = fields.get<std::vector<ValueId>>("constants");
  graph.constantStorage = readList(fields.at("constant_storage"), readStorage);
  graph.counts = readList(fields.at("counts"), readCount);
  graph.loss = fields.get<ValueId>("loss");
  graph.outputs = fields.get<std::vector<ValueId>>("outputs");
  fields.finish();
  linkResults(graph);
  return graph;
}

} // namespace

Expected<Graph> readGraph(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    if (!json.is_object() || !json.contains("schema"))
      return malformed("it has no \"schema\"");
    if (json.at("schema") != GraphSchema)
      return malformed(fmt::format("its schema is {}, not \"{}\"",
                                   json.at("schema").dump(), GraphSchema));
    Graph graph = readDocument(json);
    if (auto error = verify(graph))
      return *error;
    return graph;
  } catch (const std::exception &exception) {
    return malformed(exception.what());
  }
}

} // namespace monarch
