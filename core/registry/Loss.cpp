//===- Loss.cpp - rules and bodies of losses ------------------------------===//
//
// Losses are sums (import divides by the global count). Cross-entropy runs with
// the vocabulary split: each rank picks the log-probabilities of the labels
// that it holds, by the index list of the vocabulary dim; ignored labels are
// taken out first. Loss and count are partial.
//
//===----------------------------------------------------------------------===//
#include "core/registry/Registry.h"

namespace monarch {

namespace {

constexpr int64_t ReductionNone = 0, ReductionSum = 2;

/// nll_loss_forward(logp, target, weight?, reduction, ignore_index)
///   -> (loss, total_weight).
std::optional<OpRule> nllForward(const OpView &op) {
  if (op.operandAt(2) >= 0 || op.intAt(3, 1) != ReductionSum ||
      op.shape(0).size() != 2)
    return std::nullopt;
  OpRule rule;
  rule.operands = {labels({"n", "v"}), labels({"n"})};
  rule.results = {{}, {}};
  makePartial(rule, "n");
  makePartial(rule, "v");
  rule.linear.push_back({{0}, {0}});
  return rule;
}

/// nll_loss_backward(gradient, logp, target, weight?, reduction, ignore_index,
/// total_weight).
std::optional<OpRule> nllBackward(const OpView &op) {
  if (op.operandAt(3) >= 0 || op.intAt(4, 1) != ReductionSum ||
      op.shape(1).size() != 2)
    return std::nullopt;
  OpRule rule;
  rule.operands = {{}, labels({"n", "v"}), labels({"n"}), {}};
  rule.results = {labels({"n", "v"})};
  rule.shapeOnly = {1, op.operandAt(6)};
  addLinear(rule, {0});
  return rule;
}

/// mse_loss(x, y, reduction).
std::optional<OpRule> squaredError(const OpView &op) {
  int64_t reduction = op.intAt(2, 1);
  if (reduction == ReductionNone)
    return elementwise(op);
  if (reduction != ReductionSum || op.shape(0) != op.shape(1))
    return std::nullopt;
  OpRule rule;
  Labels all = numbered(op.shape(0).size());
  rule.operands = {all, all};
  rule.results = {{}};
  for (const DimLabel &label : all)
    makePartial(rule, label.name);
  return rule;
}

/// mse_loss_backward(gradient, x, y, reduction).
std::optional<OpRule> squaredErrorBackward(const OpView &op) {
  int64_t reduction = op.intAt(3, 1);
  if (reduction != ReductionNone && reduction != ReductionSum)
    return std::nullopt;
  OpRule rule = elementwise(op);
  addLinear(rule, {0});
  return rule;
}

} // namespace

void addLossRules(RuleTable &table) {
  table["aten::nll_loss_forward"] = nllForward;
  table["aten::nll_loss_backward"] = nllBackward;
  table["aten::mse_loss"] = squaredError;
  table["aten::mse_loss_backward"] = squaredErrorBackward;
}

} // namespace monarch
