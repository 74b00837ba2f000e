//===- Reductions.cpp - rules of sums, means and scans --------------------===//
//
// Splitting a reduced dim of a sum or mean leaves partial sums. A mean divides
// by the global count, whatever the rank holds. A maximum or a scan needs its
// dim whole.
//
//===----------------------------------------------------------------------===//
#include "core/registry/Body.h"
#include "core/registry/Registry.h"

#include <algorithm>

namespace monarch {

namespace {

/// Reduced dims, sorted; no list or an empty one means all.
std::vector<int64_t> reducedDims(const OpView &op, bool hasDims) {
  size_t rank = op.shape(0).size();
  std::vector<int64_t> dims = hasDims ? op.intsAt(1) : std::vector<int64_t>{};
  for (int64_t &dim : dims)
    dim = wrapDim(dim, rank);
  if (dims.empty())
    for (size_t dim = 0; dim < rank; ++dim)
      dims.push_back(static_cast<int64_t>(dim));
  std::sort(dims.begin(), dims.end());
  return dims;
}

OpRule reduction(const OpView &op, const std::vector<int64_t> &dims,
                 bool keepDims) {
  OpRule rule;
  rule.operands.push_back(numbered(op.shape(0).size()));
  rule.results.emplace_back();
  for (size_t dim = 0; dim < rule.operands[0].size(); ++dim) {
    bool reduced = std::binary_search(dims.begin(), dims.end(), dim);
    if (!reduced)
      rule.results[0].push_back(rule.operands[0][dim]);
    else if (keepDims)
      rule.results[0].emplace_back();
  }
  return rule;
}

OpRule sumLike(const OpView &op, bool hasDims) {
  std::vector<int64_t> dims = reducedDims(op, hasDims);
  OpRule rule = reduction(op, dims, hasDims && op.boolAt(2, false));
  for (int64_t dim : dims)
    makePartial(rule, rule.operands[0][dim].name);
  addLinear(rule, {0});
  return rule;
}

/// A mean over split dims is the local sum, divided by the global count.
OpRule meanLike(const OpView &op, bool hasDims) {
  OpRule rule = sumLike(op, hasDims);
  std::vector<int64_t> dims = reducedDims(op, hasDims);
  bool keepDims = hasDims && op.boolAt(2, false);
  std::vector<std::string> reduced;
  int64_t count = 1;
  for (int64_t dim : dims) {
    reduced.push_back(rule.operands[0][dim].name);
    count *= op.shape(0)[dim];
  }
  rule.lower = [dims, keepDims, reduced, count](Lowering &lowering) {
    if (lowering.axesOf(reduced).empty())
      return lowering.callItself();
    Body body(lowering);
    DType type = lowering.resultType(0);
    Local x = body.cast(lowering.operands[0], accumulationType(type));
    Local mean = body.divide(body.sum(x, dims, keepDims), count);
    lowering.results = {body.cast(mean, type)};
  };
  return rule;
}

std::optional<OpRule> amax(const OpView &op) {
  std::vector<int64_t> dims = reducedDims(op, true);
  OpRule rule = reduction(op, dims, op.boolAt(2, false));
  for (int64_t dim : dims)
    rule.effects[rule.operands[0][dim].name].whole = true;
  return rule;
}

/// linalg_vector_norm(x, ord, dims, keepdim, dtype): reduced dims are whole.
std::optional<OpRule> vectorNorm(const OpView &op) {
  const size_t rank = op.shape(0).size();
  std::vector<int64_t> dims = op.intsAt(2);
  for (int64_t &dim : dims)
    dim = wrapDim(dim, rank);
  std::sort(dims.begin(), dims.end());
  if (dims.empty())
    return std::nullopt;
  OpRule rule = reduction(op, dims, op.boolAt(3, false));
  for (int64_t dim : dims)
    rule.effects[rule.operands[0][dim].name].whole = true;
  return rule;
}

/// var.correction(x, dims, correction, keepdim), std and with means: reduced
/// dims are whole.
std::optional<OpRule> variance(const OpView &op) {
  std::vector<int64_t> dims = reducedDims(op, true);
  OpRule rule = reduction(op, dims, op.boolAt(3, false));
  for (int64_t dim : dims)
    rule.effects[rule.operands[0][dim].name].whole = true;
  rule.results.resize(op.resultCount(), rule.results[0]);
  return rule;
}

std::optional<OpRule> cumsum(const OpView &op) {
  OpRule rule = elementwise(op);
  size_t rank = op.shape(0).size();
  if (rank > 0)
    rule.effects[numbered(rank)[wrapDim(op.intAt(1, 0), rank)].name].whole =
        true;
  addLinear(rule, {0});
  return rule;
}

} // namespace

void addReductionRules(RuleTable &table) {
  table["aten::sum"] = [](const OpView &op) -> std::optional<OpRule> {
    return sumLike(op, /*hasDims=*/false);
  };
  table["aten::sum.dim_IntList"] =
      [](const OpView &op) -> std::optional<OpRule> {
    return sumLike(op, /*hasDims=*/true);
  };
  table["aten::mean"] = [](const OpView &op) -> std::optional<OpRule> {
    return meanLike(op, /*hasDims=*/false);
  };
  table["aten::mean.dim"] = [](const OpView &op) -> std::optional<OpRule> {
    return meanLike(op, /*hasDims=*/true);
  };
  table["aten::amax"] = amax;
  table["aten::linalg_vector_norm"] = vectorNorm;
  table["aten::var.correction"] = variance;
  table["aten::std.correction"] = variance;
  table["aten::var_mean.correction"] = variance;
  table["aten::cumsum"] = cumsum;
}

} // namespace monarch
