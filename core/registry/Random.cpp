//===- Random.cpp - rules of dropout --------------------------------------===//
//
// The mask is a function of the global index of an element, so any dim may be
// split: a rank that holds a part passes the index list of each dim and the
// global sizes.
//
//===----------------------------------------------------------------------===//
#include "core/registry/Registry.h"

namespace monarch {

namespace {

/// dropout(x, rng, stream, p, rows, sizes) -> (y, mask).
std::optional<OpRule> dropout(const OpView &op) {
  OpRule rule = elementwise(op);
  rule.operands[op.operandAt(1)] = Labels(1);
  rule.linear.push_back({{0}, {0}});
  return rule;
}

/// dropout_backward(gradient, mask, p).
std::optional<OpRule> dropoutBackward(const OpView &op) {
  OpRule rule = elementwise(op);
  addLinear(rule, {0});
  return rule;
}

} // namespace

void addRandomRules(RuleTable &table) {
  table["monarch::dropout"] = dropout;
  table["monarch::dropout_backward"] = dropoutBackward;
}

} // namespace monarch
