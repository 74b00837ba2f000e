//===- Loss.cpp - rules and bodies of losses ------------------------------===//
//
// Losses are sums (import divides by the global count). Cross-entropy runs with
// the vocabulary split: each rank picks the log-probabilities of the labels
// that it holds, by the index list of the vocabulary dim; ignored labels are
// taken out first. Loss and count are partial.
//
//===----------------------------------------------------------------------===//
#include "core/registry/Body.h"
#include "core/registry/Registry.h"

namespace monarch {

namespace {

constexpr int64_t ReductionNone = 0, ReductionSum = 2;

/// Labels as positions in the held part of the vocabulary; -1 where they are
/// ignored or held elsewhere. The kernels then ignore -1.
Local heldLabels(Lowering &lowering, Body &body, Local target, int64_t size,
                 const ShardRef &held, int64_t ignoreIndex) {
  ShardRef whole = lowering.writer.shard({plainDim(size), {}});
  Local table = lowering.writer.index({{whole}, {held}});
  Local ignored =
      body.compare("aten::eq.Scalar", target, static_cast<double>(ignoreIndex));
  Local safe = body.maskedFill(target, ignored, 0);
  return body.maskedFill(body.indexSelect(table, 0, safe), ignored, -1);
}

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
  rule.lower = [ignored = op.intAt(4, -100)](Lowering &lowering) {
    if (!lowering.splits("v"))
      return lowering.callItself();
    Body body(lowering);
    Local target = heldLabels(lowering, body, lowering.operands[1],
                              lowering.globalSize(lowering.op.operands[0], 1),
                              lowering.operandShard(0, 1), ignored);
    lowering.callAs("aten::nll_loss_forward", {lowering.operands[0], target},
                    {OperandArg{0}, OperandArg{1}, std::monostate(),
                     Expr::constant(ReductionSum), Expr::constant(-1)});
  };
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
  rule.lower = [ignored = op.intAt(5, -100)](Lowering &lowering) {
    Body body(lowering);
    Local target = lowering.operands[2];
    int64_t ignoreIndex = ignored;
    if (lowering.splits("v")) {
      target = heldLabels(lowering, body, target,
                          lowering.globalSize(lowering.op.results[0], 1),
                          lowering.resultShard(0, 1), ignored);
      ignoreIndex = -1;
    }
    // The log-probabilities and the count are looked at for shape and type
    // alone: the gradient, repeated, stands in for them.
    Local gradient = lowering.operands[0];
    std::vector<Expr> shape = lowering.resultShape(0);
    Local repeated = lowering.writer.call("aten::expand", {gradient},
                                          {OperandArg{0}, shape, false},
                                          body.type(gradient), shape);
    lowering.callAs("aten::nll_loss_backward", {gradient, repeated, target},
                    {OperandArg{0}, OperandArg{1}, OperandArg{2},
                     std::monostate(), Expr::constant(ReductionSum),
                     Expr::constant(ignoreIndex), OperandArg{0}});
  };
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
  // The kernel's own result would hold on to storage for all elements.
  rule.lower = [rank = op.shape(0).size()](Lowering &lowering) {
    Body body(lowering);
    std::vector<int64_t> dims;
    for (size_t dim = 0; dim < rank; ++dim)
      dims.push_back(static_cast<int64_t>(dim));
    Local error = body.sub(lowering.operands[0], lowering.operands[1]);
    lowering.results = {body.sum(body.mul(error, error), dims, false)};
  };
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
