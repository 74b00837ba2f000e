//===- LogSumExp.cpp - rule and body of log-sum-exp -----------------------===//
//
// log(sum(exp(x))) over some dims. The others are split as they are; a split
// reduced dim takes two all-reduces of the result's size: the largest value,
// then the sum of exponentials relative to it.
//
//===----------------------------------------------------------------------===//
#include "core/registry/Body.h"
#include "core/registry/Registry.h"

#include <algorithm>

namespace monarch {

namespace {

/// logsumexp(x, dims, keepdim).
std::optional<OpRule> logSumExp(const OpView &op) {
  const size_t rank = op.shape(0).size();
  std::vector<int64_t> dims = op.intsAt(1);
  for (int64_t &dim : dims)
    dim = wrapDim(dim, rank);
  const bool keepDims = op.boolAt(2, false);

  // x [d0 d1 ...] -> the labels of the dims that stay.
  OpRule rule;
  rule.operands = {numbered(rank)};
  rule.results = {{}};
  std::vector<std::string> reduced;
  for (size_t dim = 0; dim < rank; ++dim) {
    const DimLabel &label = rule.operands[0][dim];
    if (std::find(dims.begin(), dims.end(), dim) == dims.end()) {
      rule.results[0].push_back(label);
      continue;
    }
    reduced.push_back(label.name);
    if (keepDims)
      rule.results[0].emplace_back();
  }

  // No effects: under a split reduced dim the body leaves a replicated result.
  // No linear groups: partial sums do not pass exponentials.
  rule.lower = [dims, reduced](Lowering &lowering) {
    std::vector<int> axes = lowering.axesOf(reduced);
    if (axes.empty())
      return lowering.callItself();
    Body body(lowering);
    Local own = body.logSumExp(lowering.operands[0], dims, /*keepDims=*/true);
    lowering.results = {
        body.view(body.allReduceLogSumExp(own, axes), lowering.resultShape(0))};
  };
  return rule;
}

} // namespace

void addLogSumExpRules(RuleTable &table) {
  table["aten::logsumexp"] = logSumExp;
}

} // namespace monarch
