//===- Regions.cpp - graphs inside a graph --------------------------------===//
//
// What switches gradients or autocast, or asks for a part to be made again in
// the backward, is run in place: whether to keep or to recompute is the plan's
// choice. Of a branch on data both sides are computed and each result selected.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/capture/Interpreter.h"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>

namespace monarch {

namespace {

using at::Tensor;
using c10::IValue;
using Body = std::shared_ptr<ExportedGraph>;

/// Graphs among the inputs of a node, in order, and the place after the last.
std::vector<Body> bodiesOf(const ExportedNode &node, size_t &after) {
  std::vector<Body> bodies;
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (const auto *body = std::get_if<Body>(&node.inputs[i].second)) {
      bodies.push_back(*body);
      after = i + 1;
    }
  return bodies;
}

class Autocast {
public:
  Autocast(bool isEnabled, const DType *type)
      : wasEnabled(at::autocast::is_autocast_enabled(at::kCPU)),
        previous(at::autocast::get_autocast_dtype(at::kCPU)) {
    at::autocast::set_autocast_enabled(at::kCPU, isEnabled);
    if (type != nullptr)
      at::autocast::set_autocast_dtype(at::kCPU, toScalarType(*type));
    at::autocast::increment_nesting();
  }
  ~Autocast() {
    if (at::autocast::decrement_nesting() == 0)
      at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kCPU, wasEnabled);
    at::autocast::set_autocast_dtype(at::kCPU, previous);
  }

private:
  const bool wasEnabled;
  const at::ScalarType previous;
};

} // namespace

std::vector<IValue> Interpreter::operandsFrom(const ExportedNode &node,
                                              size_t first,
                                              const Values &values) const {
  std::vector<IValue> operands;
  for (size_t i = first; i < node.inputs.size(); ++i) {
    const auto &[name, argument] = node.inputs[i];
    if (!name.empty()) // an option of the region
      continue;
    if (const auto *list = std::get_if<std::vector<TensorName>>(&argument))
      for (const TensorName &tensor : *list)
        operands.push_back(convert(tensor, values, nullptr));
    else
      operands.push_back(convert(argument, values, nullptr));
  }
  return operands;
}

std::vector<IValue> Interpreter::runBody(const ExportedNode &node,
                                         const ExportedGraph &body,
                                         const std::vector<IValue> &operands) {
  if (operands.size() != body.inputs.size())
    failAt(node, "its graph takes another number of inputs");
  Values inner;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (const auto *tensor = std::get_if<TensorName>(&body.inputs[i]))
      inner.emplace(tensor->name, operands[i]);
    else if (const auto *symbol = std::get_if<SymbolName>(&body.inputs[i]))
      inner.emplace(symbol->name, operands[i]);
  }
  run(body, inner);
  std::vector<IValue> results;
  for (const ExportedArgument &output : body.outputs)
    results.push_back(convert(output, inner, nullptr));
  return results;
}

bool Interpreter::isComputed(const IValue &value) const {
  if (!value.isTensor() || !value.toTensor().is_floating_point())
    return false;
  const ValueId id = recorder.idOf(value.toTensor());
  return id != None && recorder.graph.value(id).kind == ValueKind::Result;
}

/// Both branches run, each on numbers that are 1 where the other is taken: what
/// is not selected can neither fail nor put infinities into gradients.
std::vector<IValue> Interpreter::runBranches(
    const ExportedNode &node, const std::vector<Body> &branches,
    const std::vector<IValue> &operands, const IValue &condition) {
  if (!condition.isTensor())
    return runBody(node, *branches[condition.toBool() ? 0 : 1], operands);
  Tensor isTaken = condition.toTensor().reshape({}).to(at::kBool);
  std::vector<std::vector<IValue>> results;
  for (const Body &branch : branches) {
    std::vector<IValue> guarded;
    for (const IValue &operand : operands)
      guarded.emplace_back(
          isComputed(operand)
              ? IValue(at::where(isTaken, operand.toTensor(), 1))
              : operand);
    recorder.source = node.source;
    results.push_back(runBody(node, *branch, guarded));
    isTaken = isTaken.logical_not();
  }
  recorder.module = node.module;
  recorder.source = node.source;
  std::vector<IValue> selected;
  for (size_t i = 0; i < results[0].size(); ++i) {
    if (results[1].size() != results[0].size() || !results[0][i].isTensor() ||
        !results[1][i].isTensor())
      failAt(node, "its branches give different results");
    const Tensor first = results[0][i].toTensor(),
                 second = results[1][i].toTensor();
    if (first.sizes() != second.sizes() ||
        first.scalar_type() != second.scalar_type())
      failAt(node, "its branches give different shapes or types");
    selected.emplace_back(at::where(isTaken, first, second));
  }
  return selected;
}

void Interpreter::runHigherOrder(const ExportedNode &node, Values &values) {
  const std::string kind = node.target.substr(23);
  size_t first = 0;
  const std::vector<Body> bodies = bodiesOf(node, first);
  auto flag = [&](size_t i) {
    const bool *value = i < node.inputs.size()
                            ? std::get_if<bool>(&node.inputs[i].second)
                            : nullptr;
    return value != nullptr && *value;
  };
  const std::vector<IValue> operands = operandsFrom(node, first, values);
  std::vector<IValue> results;
  if (kind == "cond" && bodies.size() == 2) {
    results = runBranches(node, bodies, operands,
                          convert(node.inputs[0].second, values, nullptr));
  } else if (bodies.size() != 1) {
    failAt(node, "this higher-order op is not supported");
  } else if (kind == "wrap_with_set_grad_enabled") {
    at::AutoGradMode mode(flag(0));
    results = runBody(node, *bodies[0], operands);
  } else if (kind == "wrap_with_autocast") {
    // wrap_with_autocast(device, dtype, enabled, cache, body, ...)
    Autocast autocast(flag(2) && !promote,
                      std::get_if<DType>(&node.inputs[1].second));
    results = runBody(node, *bodies[0], operands);
  } else if (kind == "tag_activation_checkpoint" ||
             kind == "wrap_activation_checkpoint" || kind == "wrap" ||
             kind == "invoke_subgraph") {
    results = runBody(node, *bodies[0], operands);
  } else {
    failAt(node, "this higher-order op is not supported");
  }
  if (node.outputs.size() == 1 &&
      std::holds_alternative<std::vector<TensorName>>(node.outputs[0])) {
    c10::List<Tensor> list;
    for (const IValue &result : results)
      list.push_back(result.toTensor());
    bind(node, {IValue(list)}, values);
    return;
  }
  bind(node, results, values);
}

} // namespace monarch
