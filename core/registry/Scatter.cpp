//===- Scatter.cpp - rules of writing into a part of a tensor -------------===//
//
// What functionalisation makes of x[...] = y, and the gradients of indexing.
// A slice is one range of the local sections, as when it is cut out; dims that
// are looked up by data are whole. Sums into a tensor pass partial sums, if
// both the tensor and what is added to it are.
//
//===----------------------------------------------------------------------===//
#include "core/registry/Registry.h"

namespace monarch {

namespace {

/// slice_scatter(x, source, dim, start, end, step).
std::optional<OpRule> sliceScatter(const OpView &op) {
  Shape shape = op.shape(0);
  SliceRange range = sliceRange(op, 2, shape);
  OpRule rule;
  rule.results.push_back(sliceLabels(range, shape));
  rule.operands = {rule.results[0], slicePiece(rule.results[0], range, shape)};
  addLinear(rule, {0, 1});
  std::string label = rule.results[0][range.dim].name;
  rule.lower = [range, label](Lowering &lowering) {
    if (!lowering.splits(label))
      return lowering.callItself();
    int dim = static_cast<int>(range.dim);
    Expr begin = lowering.resultSectionSize(0, dim, 0, range.begin);
    lowering.callAs("aten::slice_scatter", lowering.operands,
                    {OperandArg{0}, OperandArg{1}, Expr::constant(dim), begin,
                     begin + lowering.operandShape(1)[dim], Expr::constant(1)});
  };
  return rule;
}

/// select_scatter(x, source, dim, index): the dim is whole.
std::optional<OpRule> selectScatter(const OpView &op) {
  Shape shape = op.shape(0);
  int64_t dim = wrapDim(op.intAt(2, 0), shape.size());
  OpRule rule;
  Labels whole = numbered(shape.size());
  whole[dim] = {};
  Labels source = whole;
  source.erase(source.begin() + dim);
  rule.operands = {whole, source};
  rule.results = {whole};
  addLinear(rule, {0, 1});
  return rule;
}

/// index_put(x, indices, values, accumulate), and _index_put_impl with a fifth
/// argument: values' dims are those of index(x, indices).
std::optional<OpRule> indexPut(const OpView &op) {
  auto indexing = indexingOf(op);
  int values = op.operandAt(2);
  if (!indexing || values < 0)
    return std::nullopt;
  bool accumulates = op.boolAt(3, false);
  OpRule rule;
  rule.operands.resize(op.operandCount());
  rule.operands[0] = indexing->whole;
  for (const auto &[operand, names] : indexing->indices)
    rule.operands[operand] = names;
  rule.operands[values] =
      broadcast(op.shape(values), indexing->resultShape, indexing->result);
  rule.results = {indexing->whole};
  for (const DimLabel &label : indexing->looked) {
    LabelEffect &effect = rule.effects[label.name];
    // Of several values for one place the last stays: all must be there.
    effect.whole = !accumulates;
    effect.operands.assign(op.operandCount(), AxisStateKind::Replicated);
    effect.operands[0] = AxisStateKind::Partial;
    effect.results = {AxisStateKind::Partial};
  }
  addLinear(rule, {0, values});
  return rule;
}

} // namespace

void addScatterRules(RuleTable &table) {
  table["aten::slice_scatter"] = sliceScatter;
  table["aten::select_scatter"] = selectScatter;
  table["aten::index_put"] = indexPut;
  table["aten::_index_put_impl"] = indexPut;
}

} // namespace monarch
