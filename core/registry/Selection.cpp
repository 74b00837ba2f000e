//===- Selection.cpp - rules of sorting, scattering and adding at indices -===//
//
// The dim that is sorted, or written to where data say, is whole; others are
// split as they are. Sums at indices may also be split along what is added:
// each rank then adds its part to a partial tensor.
//
//===----------------------------------------------------------------------===//
#include "core/registry/Registry.h"

#include <algorithm>

namespace monarch {

namespace {

/// All operands and results of one shape but for `dim`, which is whole. What
/// has another rank has no labels.
OpRule alongDim(const OpView &op, int64_t dim) {
  const size_t rank = op.shape(0).size();
  OpRule rule;
  Labels names = numbered(rank);
  if (rank > 0)
    names[wrapDim(dim, rank)] = {};
  auto labelled = [&](const Shape &shape) {
    return shape.size() == rank ? names : Labels(shape.size());
  };
  for (size_t k = 0; k < op.operandCount(); ++k)
    rule.operands.push_back(labelled(op.shape(static_cast<int>(k))));
  for (size_t k = 0; k < op.resultCount(); ++k)
    rule.results.push_back(labelled(op.resultShape(static_cast<int>(k))));
  return rule;
}

/// topk(x, k, dim, ...), sort.stable(x, stable, dim, ...): values and indices.
std::optional<OpRule> topk(const OpView &op) {
  return alongDim(op, op.intAt(2, -1));
}

/// sort(x, dim, descending).
std::optional<OpRule> sort(const OpView &op) {
  return alongDim(op, op.intAt(1, -1));
}

/// max.dim(x, dim, keepdim) -> (values, indices); min.dim alike.
std::optional<OpRule> extreme(const OpView &op) {
  OpRule rule = alongDim(op, op.intAt(1, 0));
  if (op.boolAt(2, false) || op.shape(0).empty())
    return rule;
  Labels kept = rule.operands[0];
  kept.erase(kept.begin() + wrapDim(op.intAt(1, 0), kept.size()));
  rule.results.assign(2, kept);
  return rule;
}

/// argmax(x, dim, keepdim), argmin alike.
std::optional<OpRule> argument(const OpView &op) {
  if (op.intsAt(1).empty() || op.shape(0).empty())
    return std::nullopt;
  OpRule rule = alongDim(op, op.intAt(1, 0));
  rule.results = rule.operands;
  if (!op.boolAt(2, false))
    rule.results[0].erase(rule.results[0].begin() +
                          wrapDim(op.intAt(1, 0), op.shape(0).size()));
  return rule;
}

/// flip(x, dims).
std::optional<OpRule> flip(const OpView &op) {
  const size_t rank = op.shape(0).size();
  OpRule rule;
  rule.operands = {numbered(rank)};
  for (int64_t dim : op.intsAt(1))
    rule.operands[0][wrapDim(dim, rank)] = {};
  rule.results = rule.operands;
  addLinear(rule, {0});
  return rule;
}

/// roll(x, shifts, dims): without dims over all elements.
std::optional<OpRule> roll(const OpView &op) {
  const size_t rank = op.shape(0).size();
  const std::vector<int64_t> dims = op.intsAt(2);
  OpRule rule;
  rule.operands = {dims.empty() ? Labels(rank) : numbered(rank)};
  for (int64_t dim : dims)
    rule.operands[0][wrapDim(dim, rank)] = {};
  rule.results = rule.operands;
  addLinear(rule, {0});
  return rule;
}

/// histc(x, bins, min, max): counts of a part add up.
std::optional<OpRule> histogram(const OpView &op) {
  OpRule rule;
  rule.operands = {numbered(op.shape(0).size())};
  rule.results = {labels({""})};
  // Without bounds these are the smallest and largest element.
  const bool isBounded = op.numberAt(2) != op.numberAt(3);
  for (const DimLabel &label : rule.operands[0])
    if (isBounded)
      makePartial(rule, label.name);
    else
      rule.effects[label.name].whole = true;
  return rule;
}

//===- Scattering ---------------------------------------------------------===//

/// (self, dim, index, src or a number): dims other than `dim` are the same
/// where index, src and self are equally long.
OpRule scatterLike(const OpView &op, int index, int source) {
  OpRule rule;
  const Shape self = op.shape(0), indices = op.shape(index);
  Labels names = numbered(self.size());
  rule.operands.resize(op.operandCount());
  if (self.size() != indices.size()) // scalars
    return unlabelled(op);
  const size_t dim = wrapDim(op.intAt(1, 0), std::max<size_t>(self.size(), 1));
  for (size_t k = 0; k < self.size(); ++k)
    if (k == dim || self[k] != indices[k] ||
        (source >= 0 && op.shape(source)[k] != indices[k]))
      names[k] = {};
  for (Labels &operand : rule.operands)
    operand = names;
  rule.results = {names};
  return rule;
}

/// The label that is added up at indices: self is partial, and so is the sum.
void addUp(OpRule &rule, const std::string &label) {
  makePartial(rule, label);
  auto &operands = rule.effects[label].operands;
  operands.assign(rule.operands.size(), AxisStateKind::Replicated);
  operands[0] = AxisStateKind::Partial;
}

std::optional<OpRule> scatterSource(const OpView &op) {
  OpRule rule = scatterLike(op, op.operandAt(2), op.operandAt(3));
  addLinear(rule, {0, op.operandAt(3)});
  return rule;
}

std::optional<OpRule> scatterValue(const OpView &op) {
  OpRule rule = scatterLike(op, op.operandAt(2), -1);
  if (op.numberAt(3) == 0.0)
    addLinear(rule, {0});
  return rule;
}

std::optional<OpRule> scatterAdd(const OpView &op) {
  const int index = op.operandAt(2), source = op.operandAt(3);
  OpRule rule = scatterLike(op, index, source);
  addLinear(rule, {0, source});
  if (op.shape(0).empty() || op.shape(index) != op.shape(source) ||
      !isFloating(op.resultType(0)))
    return rule;
  const int64_t dim = wrapDim(op.intAt(1, 0), op.shape(0).size());
  rule.operands[index][dim] = rule.operands[source][dim] = {"x"};
  addUp(rule, "x");
  return rule;
}

/// index_add(self, dim, index, source, alpha).
std::optional<OpRule> indexAdd(const OpView &op) {
  const int index = op.operandAt(2), source = op.operandAt(3);
  const size_t rank = op.shape(0).size();
  if (rank == 0 || op.shape(source).size() != rank)
    return std::nullopt;
  const int64_t dim = wrapDim(op.intAt(1, 0), rank);
  OpRule rule = alongDim(op, dim);
  addLinear(rule, {0, source});
  if (!isFloating(op.resultType(0)))
    return rule;
  rule.operands[source][dim] = {"x"};
  rule.operands[index] = labels({"x"});
  addUp(rule, "x");
  return rule;
}

/// index_select(x, dim, index).
std::optional<OpRule> indexSelect(const OpView &op) {
  const size_t rank = op.shape(0).size();
  if (rank == 0 || op.shape(1).size() != 1)
    return std::nullopt;
  const int64_t dim = wrapDim(op.intAt(1, 0), rank);
  OpRule rule = alongDim(op, dim);
  rule.operands[1] = labels({"x"});
  rule.results[0][dim] = {"x"};
  addLinear(rule, {0});
  return rule;
}

} // namespace

void addSelectionRules(RuleTable &table) {
  table["aten::topk"] = topk;
  table["aten::sort"] = sort;
  table["aten::sort.stable"] = topk;
  table["aten::max.dim"] = extreme;
  table["aten::min.dim"] = extreme;
  table["aten::argmax"] = argument;
  table["aten::argmin"] = argument;
  table["aten::flip"] = flip;
  table["aten::roll"] = roll;
  table["aten::histc"] = histogram;
  table["aten::scatter.src"] = scatterSource;
  table["aten::scatter.value"] = scatterValue;
  table["aten::scatter_add"] = scatterAdd;
  table["aten::index_add"] = indexAdd;
  table["aten::index_select"] = indexSelect;
}

} // namespace monarch
