//===- Verify.cpp - invariants of the joint graph -------------------------===//
//
// Dense ids, definitions before uses, forward before backward, shapes and
// element types of gradients equal to what they are gradients of, and leaves
// that are what their tables say.
//
//===----------------------------------------------------------------------===//
#include "core/graph/Graph.h"

#include <fmt/format.h>

namespace monarch {

namespace {

Error violation(std::string what) {
  return {"MP1021", ExitCode::BadInput, "the graph is not valid: " + what, "",
          "write the graph again with this version of monarch-plan"};
}

class Verifier {
public:
  explicit Verifier(const Graph &graph) : graph(graph) {}

  std::optional<Error> run() {
    if (auto error = values())
      return error;
    for (size_t id = 0; id < graph.ops.size(); ++id)
      if (auto error = op(static_cast<OpId>(id)))
        return error;
    if (auto error = leaves())
      return error;
    return roots();
  }

private:
  bool isValue(ValueId id) const {
    return id >= 0 && static_cast<size_t>(id) < graph.values.size();
  }
  std::string nameOf(OpId id) const {
    const Op &op = graph.op(id);
    const std::string origin = originText(op.module, op.source);
    return fmt::format("op {} ({}{}{})", id, op.name,
                       origin.empty() ? "" : " of ", origin);
  }

  std::optional<Error> values() {
    for (size_t id = 0; id < graph.values.size(); ++id) {
      const Value &value = graph.values[id];
      if (value.batch.size() != value.shape.size())
        return violation(fmt::format("value {} has {} dims but {} batch "
                                     "factors",
                                     id, value.shape.size(),
                                     value.batch.size()));
      for (size_t dim = 0; dim < value.shape.size(); ++dim) {
        if (value.shape[dim] < 0 || value.batch[dim] < 0)
          return violation(fmt::format("value {} has a negative size", id));
        if (value.batch[dim] != 0 &&
            value.shape[dim] != value.batch[dim] * graph.unitRows)
          return violation(fmt::format("dim {} of value {} is {}, not {} times "
                                       "the {} rows of the unit",
                                       dim, id, value.shape[dim],
                                       value.batch[dim], graph.unitRows));
      }
      bool isResult = value.kind == ValueKind::Result;
      if (isResult != (value.producer != None))
        return violation(fmt::format("value {} is a result without an op, or a "
                                     "leaf with one",
                                     id));
      if (isResult) {
        bool known = value.producer >= 0 &&
                     static_cast<size_t>(value.producer) < graph.ops.size();
        const auto *results =
            known ? &graph.op(value.producer).results : nullptr;
        if (!results || value.result < 0 ||
            static_cast<size_t>(value.result) >= results->size() ||
            (*results)[value.result] != static_cast<ValueId>(id))
          return violation(
              fmt::format("value {} is not the result that it says "
                          "it is",
                          id));
      }
      for (ValueId forward : value.cotangentOf) {
        if (!isValue(forward))
          return violation(
              fmt::format("value {} is the cotangent of nothing", id));
        if (graph.value(forward).shape != value.shape ||
            graph.value(forward).type != value.type)
          return violation(fmt::format("value {} and value {}, whose cotangent "
                                       "it is, differ in shape or type",
                                       id, forward));
      }
    }
    return std::nullopt;
  }

  std::optional<Error> op(OpId id) {
    const Op &op = graph.op(id);
    if (op.phase == Phase::Forward && seenBackward)
      return violation(nameOf(id) + " is forward but follows a backward op");
    seenBackward |= op.phase == Phase::Backward;
    for (ValueId operand : op.operands)
      if (!isValue(operand) || graph.value(operand).producer >= id)
        return violation(nameOf(id) + " reads a value that is not yet made");
    for (size_t i = 0; i < op.results.size(); ++i) {
      ValueId result = op.results[i];
      if (result != None &&
          (!isValue(result) || graph.value(result).producer != id))
        return violation(
            fmt::format("{} does not make its result {}", nameOf(id), i));
    }
    if (op.forward != None &&
        (op.phase == Phase::Forward || op.forward < 0 || op.forward >= id ||
         graph.op(op.forward).phase != Phase::Forward))
      return violation(nameOf(id) + " names a forward op that it cannot have");
    for (const Arg &arg : op.args)
      if (!isLegal(arg, op))
        return violation(nameOf(id) + " has an argument that points nowhere");
    return std::nullopt;
  }

  bool isLegal(const Arg &arg, const Op &op) const {
    auto isOperand = [&](int index) {
      return index >= 0 && static_cast<size_t>(index) < op.operands.size();
    };
    auto rank = [&](int result) -> int64_t {
      if (result < 0 || static_cast<size_t>(result) >= op.results.size() ||
          op.results[result] == None)
        return None;
      return static_cast<int64_t>(graph.value(op.results[result]).shape.size());
    };
    if (const auto *operand = std::get_if<OperandArg>(&arg))
      return isOperand(operand->index);
    if (const auto *list = std::get_if<OperandListArg>(&arg)) {
      for (int index : list->indices)
        if (index != None && !isOperand(index))
          return false;
      return true;
    }
    if (const auto *sizes = std::get_if<ResultSizes>(&arg))
      return rank(sizes->result) != None;
    if (const auto *size = std::get_if<ResultSize>(&arg))
      return size->dim >= 0 && size->dim < rank(size->result);
    if (const auto *sizes = std::get_if<ResultsSizes>(&arg)) {
      for (size_t i = 0; i < op.results.size(); ++i)
        if (sizes->dim < 0 || sizes->dim >= rank(static_cast<int>(i)))
          return false;
    }
    return true;
  }

  std::optional<Error> leaf(ValueId id, ValueKind kind, std::string_view what) {
    if (!isValue(id) || graph.value(id).kind != kind)
      return violation(
          fmt::format("a {} names value {}, which is none", what, id));
    return std::nullopt;
  }

  std::optional<Error> leaves() {
    for (const Parameter &parameter : graph.parameters) {
      if (auto error = leaf(parameter.value, ValueKind::Parameter, "parameter"))
        return error;
      const Value &value = graph.value(parameter.value);
      for (ValueId gradient : parameter.gradients)
        if (!isValue(gradient) || graph.value(gradient).shape != value.shape ||
            graph.value(gradient).type != value.type)
          return violation("a gradient of parameter " + value.name +
                           " has another shape or type");
    }
    for (const Buffer &buffer : graph.buffers) {
      if (auto error = leaf(buffer.value, ValueKind::Buffer, "buffer"))
        return error;
      if (buffer.updated != None && !isValue(buffer.updated))
        return violation("a buffer is updated by nothing");
    }
    for (const Input &input : graph.inputs)
      if (auto error = leaf(input.value, ValueKind::Input, "input"))
        return error;
    for (ValueId constant : graph.constants)
      if (auto error = leaf(constant, ValueKind::Constant, "constant"))
        return error;
    if (graph.constants.size() != graph.constantStorage.size())
      return violation("constants and their storage differ in number");
    return std::nullopt;
  }

  std::optional<Error> roots() {
    for (const LossCount &count : graph.counts) {
      if (auto error = leaf(count.inverseCount, ValueKind::InverseCount,
                            "mean of the loss"))
        return error;
      if (count.target != None && !isValue(count.target))
        return violation("a mean of the loss counts nothing");
    }
    for (ValueId output : graph.outputs)
      if (!isValue(output))
        return violation("an output is no value");
    if (graph.loss != None &&
        (!isValue(graph.loss) || !graph.value(graph.loss).shape.empty()))
      return violation("the loss is not a scalar");
    return std::nullopt;
  }

  const Graph &graph;
  bool seenBackward = false;
};

} // namespace

std::string originText(std::string_view module, std::string_view source) {
  if (source.empty())
    return std::string(module);
  if (module.empty())
    return std::string(source);
  return fmt::format("{} ({})", module, source);
}

std::optional<Error> verify(const Graph &graph) {
  return Verifier(graph).run();
}

} // namespace monarch
