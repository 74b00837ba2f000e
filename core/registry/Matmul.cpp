//===- Matmul.cpp - rules of matrix products ------------------------------===//
//
// i and j are split as they are; a split k leaves partial sums, and a bias that
// is added to them must be partial too, or it would be added once a rank.
// Blocks may be empty: products over no k are zeros.
//
//===----------------------------------------------------------------------===//
#include "core/registry/Registry.h"

namespace monarch {

namespace {

OpRule product(const OpView &op, bool batched, bool biased) {
  OpRule rule;
  Labels result = batched ? labels({"b", "i", "j"}) : labels({"i", "j"});
  if (biased)
    rule.operands.push_back(broadcast(op.shape(0), op.resultShape(0), result));
  rule.operands.push_back(batched ? labels({"b", "i", "k"})
                                  : labels({"i", "k"}));
  rule.operands.push_back(batched ? labels({"b", "k", "j"})
                                  : labels({"k", "j"}));
  rule.results.push_back(result);
  makePartial(rule, "k");
  if (biased) {
    rule.effects["k"].operands = {AxisStateKind::Partial,
                                  AxisStateKind::Replicated,
                                  AxisStateKind::Replicated};
    addLinear(rule, {0, 1});
    addLinear(rule, {0, 2});
  } else {
    addLinear(rule, {0});
    addLinear(rule, {1});
  }
  return rule;
}

} // namespace

void addMatmulRules(RuleTable &table) {
  table["aten::mm"] = [](const OpView &op) -> std::optional<OpRule> {
    return product(op, /*batched=*/false, /*biased=*/false);
  };
  table["aten::bmm"] = [](const OpView &op) -> std::optional<OpRule> {
    return product(op, /*batched=*/true, /*biased=*/false);
  };
  table["aten::addmm"] = [](const OpView &op) -> std::optional<OpRule> {
    return product(op, /*batched=*/false, /*biased=*/true);
  };
  table["aten::baddbmm"] = [](const OpView &op) -> std::optional<OpRule> {
    return product(op, /*batched=*/true, /*biased=*/true);
  };
}

} // namespace monarch
