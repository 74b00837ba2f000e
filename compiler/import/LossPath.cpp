//===- LossPath.cpp - is the loss a sum over rows -------------------------===//
//
// A mean may be written as sum times a global 1/count only where the rest of
// the path to the loss is linear: additions, and multiplications by numbers.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/Normalize.h"

#include <algorithm>
#include <set>

namespace monarch {

namespace {

/// Linear in its tensor operands together: every one of them is a term. A
/// number that is added would be added once a unit.
bool isSumOfTerms(const Op &op) {
  static const std::set<std::string> linear = {
      "aten::neg",     "aten::_to_copy",  "aten::view",
      "aten::squeeze", "aten::unsqueeze", "aten::clone"};
  if (op.name == "aten::add.Tensor" || op.name == "aten::sub.Tensor")
    return op.operands.size() == 2;
  if (op.name == "aten::mul.Tensor" || op.name == "aten::div.Tensor")
    return op.operands.size() == 1 &&
           std::holds_alternative<OperandArg>(op.args[0]);
  return linear.count(op.name) != 0;
}

/// What the loss adds up: values whose producer is no sum of terms.
std::vector<ValueId> termsOf(const Graph &graph) {
  std::vector<ValueId> open = {graph.loss}, terms;
  while (!open.empty()) {
    ValueId id = open.back();
    open.pop_back();
    OpId producer = graph.value(id).producer;
    if (producer != None && isSumOfTerms(graph.op(producer))) {
      const auto &operands = graph.op(producer).operands;
      open.insert(open.end(), operands.begin(), operands.end());
    } else {
      terms.push_back(id);
    }
  }
  return terms;
}

bool isInverseCount(const Graph &graph, ValueId id) {
  return graph.value(id).kind == ValueKind::InverseCount;
}

/// sum * inverse count.
bool isMean(const Graph &graph, ValueId id) {
  OpId producer = graph.value(id).producer;
  return producer != None && graph.op(producer).name == "aten::mul.Tensor" &&
         graph.op(producer).operands.size() == 2 &&
         isInverseCount(graph, graph.op(producer).operands[1]);
}

bool isSum(const Graph &graph, ValueId id) {
  OpId producer = graph.value(id).producer;
  if (producer == None)
    return false;
  const Op &op = graph.op(producer);
  constexpr int64_t Sum = 2; // at::Reduction
  return op.name == "aten::sum" || op.name == "aten::sum.dim_IntList" ||
         (op.name == "aten::nll_loss_forward" && op.args[3] == Arg(Sum));
}

} // namespace

std::set<std::string> nonlinearCounts(const Graph &graph) {
  std::set<ValueId> means;
  if (graph.loss != None)
    for (ValueId term : termsOf(graph))
      if (isMean(graph, term))
        means.insert(term);
  std::set<std::string> names;
  for (const Op &op : graph.ops) {
    if (op.phase == Phase::Backward)
      break;
    const bool isTerm = !op.results.empty() && means.count(op.results[0]) != 0;
    for (ValueId operand : op.operands) {
      if (isInverseCount(graph, operand) && !isTerm)
        names.insert(graph.value(operand).name);
      // A mean that is a term of the loss and read elsewhere too.
      if (means.count(operand) != 0 && !isSumOfTerms(op))
        names.insert(
            graph.value(graph.op(graph.value(operand).producer).operands[1])
                .name);
    }
  }
  return names;
}

bool isSeparable(const Graph &graph) {
  if (graph.loss == None)
    return true;
  for (const Op &op : graph.ops)
    if (op.name.find("batch_norm") != std::string::npos)
      return false;
  const auto terms = termsOf(graph);
  auto all = [&](bool (*is)(const Graph &, ValueId)) {
    return std::all_of(terms.begin(), terms.end(),
                       [&](ValueId term) { return is(graph, term); });
  };
  return all(isMean) || all(isSum);
}

} // namespace monarch
