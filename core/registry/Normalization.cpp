//===- Normalization.cpp - rules and bodies of layer norm -----------------===//
//
// Rows are independent. A split normalised dim takes two all-reduces forward
// (the mean, then the centred squares) and two backward (the sums of g w and
// g w x^), divided by the global count.
//
//===----------------------------------------------------------------------===//
#include "core/registry/Registry.h"

namespace monarch {

namespace {

constexpr size_t NormalizedShape = 1;

/// native_layer_norm(x, normalized_shape, weight?, bias?, eps)
///   -> (y, mean, rstd).
std::optional<OpRule> layerNorm(const OpView &op) {
  OpRule rule;
  size_t rank = op.shape(0).size();
  size_t rows = rank - op.intsAt(NormalizedShape).size();
  Labels all = numbered(rank);
  Labels normalized(all.begin() + rows, all.end());
  Labels statistics(all.begin(), all.begin() + rows);
  statistics.resize(rank);
  rule.operands.assign(op.operandCount(), normalized);
  rule.operands[0] = all;
  rule.results = {all, statistics, statistics};
  return rule;
}

/// native_layer_norm_backward(g, x, normalized_shape, mean, rstd, weight?,
/// bias?, output_mask) -> (dx, dweight, dbias).
std::optional<OpRule> layerNormBackward(const OpView &op) {
  OpRule rule;
  size_t rank = op.shape(0).size();
  size_t rows = rank - op.intsAt(2).size();
  Labels all = numbered(rank);
  Labels normalized(all.begin() + rows, all.end());
  Labels statistics(all.begin(), all.begin() + rows);
  statistics.resize(rank);
  rule.operands.assign(op.operandCount(), normalized);
  rule.operands[0] = rule.operands[1] = all;
  rule.operands[op.operandAt(3)] = statistics;
  rule.operands[op.operandAt(4)] = statistics;
  rule.results = {all, normalized, normalized};
  for (size_t k = 0; k < 3; ++k)
    if (op.op.results[k] == None)
      rule.results[k].clear();
  for (size_t dim = 0; dim < rows; ++dim)
    makePartial(rule, all[dim].name);
  if (int bias = op.operandAt(6); bias >= 0)
    rule.shapeOnly = {bias};
  addLinear(rule, {0});
  return rule;
}

} // namespace

void addNormalizationRules(RuleTable &table) {
  table["aten::native_layer_norm"] = layerNorm;
  table["aten::native_layer_norm_backward"] = layerNormBackward;
}

} // namespace monarch
