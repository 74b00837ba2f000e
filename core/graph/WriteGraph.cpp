//===- WriteGraph.cpp - monarch.graph/1, written --------------------------===//
//
// Canonical: fixed key order, one value, op or leaf a line, defaults left out,
// so that a change of the model is a readable diff.
//
//===----------------------------------------------------------------------===//
#include "core/graph/Graph.h"
#include "core/graph/GraphFormat.h"
#include "core/support/Json.h"

#include <cmath>

namespace monarch {

namespace {

/// A string would be a literal of its own: non-finite numbers are tagged.
Json number(double value) {
  if (std::isfinite(value))
    return value;
  return {{"float", jsonOfReal(value)}};
}

struct ArgWriter {
  Json operator()(std::monostate) const { return nullptr; }
  Json operator()(const OperandArg &arg) const {
    return {{"operand", arg.index}};
  }
  Json operator()(const OperandListArg &arg) const {
    return {{"operands", arg.indices}};
  }
  Json operator()(bool arg) const { return arg; }
  Json operator()(int64_t arg) const { return arg; }
  Json operator()(double arg) const { return number(arg); }
  Json operator()(const std::string &arg) const { return arg; }
  Json operator()(const std::vector<int64_t> &arg) const {
    return {{"ints", arg}};
  }
  Json operator()(const std::vector<double> &arg) const {
    Json list = Json::array();
    for (double value : arg)
      list.push_back(number(value));
    return {{"floats", list}};
  }
  Json operator()(const std::vector<bool> &arg) const {
    return {{"bools", arg}};
  }
  Json operator()(DType arg) const { return {{"dtype", toString(arg)}}; }
  Json operator()(const ResultSizes &arg) const {
    return {{"sizes_of", arg.result}};
  }
  Json operator()(const ResultSize &arg) const {
    return {{"size_of", {arg.result, arg.dim}}};
  }
  Json operator()(const ResultsSizes &arg) const {
    return {{"sizes_along", arg.dim}};
  }
};

Json toJson(const Value &value) {
  Json json;
  json["kind"] = nameOf(value.kind);
  if (!value.name.empty())
    json["name"] = value.name;
  json["type"] = toString(value.type);
  json["shape"] = value.shape;
  bool scales = false;
  for (int64_t factor : value.batch)
    scales |= factor != 0;
  if (scales)
    json["batch"] = value.batch;
  if (!value.cotangentOf.empty())
    json["cotangent_of"] = value.cotangentOf;
  return json;
}

Json toJson(const Op &op) {
  Json json;
  json["op"] = op.name;
  json["operands"] = op.operands;
  Json args = Json::array();
  for (const Arg &arg : op.args)
    args.push_back(std::visit(ArgWriter{}, arg));
  json["args"] = std::move(args);
  json["results"] = op.results;
  if (op.phase == Phase::Backward)
    json["phase"] = "backward";
  if (op.forward != None)
    json["forward"] = op.forward;
  if (!op.module.empty())
    json["module"] = op.module;
  if (!op.source.empty())
    json["source"] = op.source;
  return json;
}

Json toJson(const Storage &storage) {
  Json json;
  json["record"] = storage.record;
  json["offset_bytes"] = storage.offsetBytes;
  json["strides"] = storage.strides;
  return json;
}

Json toJson(const Parameter &parameter) {
  Json json;
  json["value"] = parameter.value;
  json["names"] = parameter.names;
  json["trainable"] = parameter.trainable;
  json["storage"] = toJson(parameter.storage);
  json["gradients"] = parameter.gradients;
  return json;
}

Json toJson(const Buffer &buffer) {
  Json json;
  json["value"] = buffer.value;
  json["names"] = buffer.names;
  json["persistent"] = buffer.persistent;
  json["storage"] = toJson(buffer.storage);
  json["updated"] = buffer.updated;
  return json;
}

Json toJson(const Input &input) {
  Json json;
  json["value"] = input.value;
  json["name"] = input.name;
  return json;
}

Json toJson(const LossCount &count) {
  Json json;
  json["inverse_count"] = count.inverseCount;
  json["target"] = count.target;
  json["ignore_index"] = count.ignoreIndex;
  json["per_unit"] = count.perUnit;
  return json;
}

/// Keys and scalars of the document, then lists with one element a line.
class DocumentWriter {
public:
  void field(std::string_view key, const Json &value) {
    text += separator() + quoted(key) + ": " + value.dump();
  }
  template <typename T>
  void list(std::string_view key, const std::vector<T> &elements) {
    text += separator() + quoted(key) + ": [";
    const char *before = "\n    ";
    for (const T &element : elements) {
      text += before + toJson(element).dump();
      before = ",\n    ";
    }
    text += elements.empty() ? "]" : "\n  ]";
  }
  std::string finish() { return text + "\n}\n"; }

private:
  std::string separator() {
    std::string result = first ? "{\n  " : ",\n  ";
    first = false;
    return result;
  }
  static std::string quoted(std::string_view key) {
    return "\"" + std::string(key) + "\"";
  }

  std::string text;
  bool first = true;
};

} // namespace

std::string writeGraph(const Graph &graph) {
  DocumentWriter writer;
  writer.field("schema", GraphSchema);
  writer.field("unit_rows", graph.unitRows);
  writer.field("dynamic_batch", graph.dynamicBatch);
  writer.field("separable", graph.separable);
  writer.list("values", graph.values);
  writer.list("ops", graph.ops);
  writer.list("parameters", graph.parameters);
  writer.list("buffers", graph.buffers);
  writer.list("inputs", graph.inputs);
  writer.field("constants", graph.constants);
  writer.list("constant_storage", graph.constantStorage);
  writer.list("counts", graph.counts);
  writer.field("loss", graph.loss);
  writer.field("outputs", graph.outputs);
  return writer.finish();
}

} // namespace monarch
