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

namespace {

/// Dims that grow with the rows.
size_t rowDims(const Value &value) {
  return static_cast<size_t>(
      std::count_if(value.batch.begin(), value.batch.end(),
                    [](int64_t factor) { return factor != 0; }));
}

/// Reads shapes and types only.
bool isCreation(const Op &op) {
  return op.name.find("::new_") != std::string::npos ||
         op.name.ends_with("_like");
}

/// The op normalises or sums along a dim of rows.
bool scansRows(const Graph &graph, const Op &op) {
  static const std::set<std::string> scans = {
      "aten::_softmax", "aten::_log_softmax", "aten::cumsum"};
  if (scans.count(op.name) == 0)
    return false;
  const Value &x = graph.value(op.operands[0]);
  auto dim = std::get<int64_t>(op.args[1]);
  if (dim < 0)
    dim += static_cast<int64_t>(x.batch.size());
  return dim < static_cast<int64_t>(x.batch.size()) && x.batch[dim] != 0;
}

bool mixesRows(const Graph &graph, const Op &op, bool isTermSum) {
  bool readsRows = false;
  for (ValueId operand : op.operands) {
    const Value &value = graph.value(operand);
    readsRows |= isFloating(value.type) && rowDims(value) > 0;
  }
  if (!readsRows || isCreation(op))
    return false;
  for (ValueId result : op.results) {
    if (result == None)
      continue;
    const Value &value = graph.value(result);
    if (rowDims(value) > 1 || (rowDims(value) == 0 && !isTermSum))
      return true;
  }
  return scansRows(graph, op);
}

} // namespace

bool mixesRows(const Graph &graph) {
  if (graph.loss == None)
    return false;
  std::set<ValueId> sums;
  for (ValueId term : termsOf(graph))
    sums.insert(isMean(graph, term)
                    ? graph.op(graph.value(term).producer).operands[0]
                    : term);
  // Gradients flow through real numbers: integers are given.
  std::vector<ValueId> open = {graph.loss};
  std::set<OpId> seen;
  while (!open.empty()) {
    const OpId producer = graph.value(open.back()).producer;
    open.pop_back();
    if (producer == None || !seen.insert(producer).second)
      continue;
    const Op &op = graph.op(producer);
    bool isTermSum = false;
    for (ValueId result : op.results)
      isTermSum |= sums.count(result) != 0;
    if (mixesRows(graph, op, isTermSum))
      return true;
    for (ValueId operand : op.operands)
      if (isFloating(graph.value(operand).type))
        open.push_back(operand);
  }
  return false;
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
