//===- Random.cpp - rules of dropout --------------------------------------===//
//
// The mask is a function of the global index of an element, so any dim may be
// split: a rank that holds a part passes the index list of each dim and the
// global sizes.
//
//===----------------------------------------------------------------------===//
#include "core/registry/Registry.h"

#include <algorithm>

namespace monarch {

namespace {

/// dropout(x, rng, stream, p, rows, sizes) -> (y, mask).
std::optional<OpRule> dropout(const OpView &op) {
  OpRule rule = elementwise(op);
  rule.operands[op.operandAt(1)] = Labels(1);
  rule.linear.push_back({{0}, {0}});
  rule.lower = [rank = static_cast<int>(op.shape(0).size()),
                x = op.operandAt(0),
                state = op.operandAt(1)](Lowering &lowering) {
    auto isWhole = [](const std::vector<std::string> &labels) {
      return labels.empty();
    };
    if (std::all_of(lowering.labels.begin(), lowering.labels.end(), isWhole))
      return lowering.callItself();
    std::vector<Local> operands = {lowering.operands[x],
                                   lowering.operands[state]};
    OperandListArg rows;
    std::vector<Expr> sizes;
    for (int dim = 0; dim < rank; ++dim) {
      rows.indices.push_back(static_cast<int>(operands.size()));
      operands.push_back(lowering.resultIndices(0, dim));
      sizes.push_back(
          Expr::constant(lowering.globalSize(lowering.op.results[0], dim)));
    }
    lowering.callAs("monarch::dropout", operands,
                    {OperandArg{0}, OperandArg{1}, lowering.localArg(2),
                     lowering.localArg(3), rows, sizes});
  };
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
