//===- Sections.cpp - rules of ops that cut and join dims -----------------===//
//
// The dim that is cut is a label; each piece carries a section of it, so a
// split has a position in every section. A rank holds the sections one after
// the other: locally, too, a piece is one range, whose bounds are sums of local
// section sizes. Cuts that meet no section keep the dim whole.
//
//===----------------------------------------------------------------------===//
#include "core/registry/Registry.h"

#include <algorithm>

namespace monarch {

namespace {

int64_t clampBound(int64_t bound, int64_t size) {
  return std::clamp(bound < 0 ? bound + size : bound, int64_t(0), size);
}

/// Labels of the part [begin, end) of a dim of a tensor with these labels. An
/// empty part is empty on every rank: it has no label.
Labels piece(Labels whole, int64_t dim, int64_t begin, int64_t end,
             int64_t size) {
  DimLabel &label = whole[dim];
  if (begin == end) {
    label = {};
  } else if (begin != 0 || end != size) {
    label.begin = begin;
    label.end = end;
  }
  return whole;
}

std::optional<OpRule> split(const OpView &op) {
  OpRule rule;
  Shape shape = op.shape(0);
  int64_t dim = wrapDim(op.intAt(2, 0), shape.size());
  rule.operands.push_back(numbered(shape.size()));
  int64_t begin = 0;
  for (size_t k = 0; k < op.resultCount(); ++k) {
    if (op.op.results[k] == None)
      return std::nullopt;
    int64_t size = op.resultShape(k)[dim];
    rule.results.push_back(
        piece(rule.operands[0], dim, begin, begin + size, shape[dim]));
    begin += size;
  }
  addLinear(rule, {0});
  rule.follows = true;
  rule.lower = [dim](Lowering &lowering) {
    std::vector<Expr> sizes;
    for (size_t k = 0; k < lowering.op.results.size(); ++k)
      sizes.push_back(lowering.resultShape(static_cast<int>(k))[dim]);
    lowering.callAs("aten::split_with_sizes", lowering.operands,
                    {OperandArg{0}, sizes, Expr::constant(dim)});
  };
  return rule;
}

std::optional<OpRule> slice(const OpView &op) {
  OpRule rule;
  Shape shape = op.shape(0);
  SliceRange range = sliceRange(op, 1, shape);
  rule.operands = {sliceLabels(range, shape)};
  rule.results = {slicePiece(rule.operands[0], range, shape)};
  addLinear(rule, {0});
  rule.follows = true;
  std::string label = rule.operands[0][range.dim].name;
  rule.lower = [range, label](Lowering &lowering) {
    if (!lowering.splits(label))
      return lowering.callItself();
    int dim = static_cast<int>(range.dim);
    Expr begin = lowering.operandSectionSize(0, dim, 0, range.begin);
    lowering.callAs("aten::slice.Tensor", lowering.operands,
                    {OperandArg{0}, Expr::constant(dim), begin,
                     begin + lowering.resultShape(0)[dim], Expr::constant(1)});
  };
  return rule;
}

/// slice_backward(gradient, input_sizes, dim, start, end, step).
std::optional<OpRule> sliceBackward(const OpView &op) {
  OpRule rule;
  Shape shape = op.resultShape(0);
  SliceRange range = sliceRange(op, 2, shape);
  rule.results = {sliceLabels(range, shape)};
  rule.operands = {slicePiece(rule.results[0], range, shape)};
  addLinear(rule, {0});
  std::string label = rule.results[0][range.dim].name;
  rule.lower = [range, label, shape](Lowering &lowering) {
    if (!lowering.splits(label))
      return lowering.callItself();
    int dim = static_cast<int>(range.dim);
    // From the last dim on: zeros before and after.
    std::vector<Expr> padding(2 * (shape.size() - dim));
    padding[padding.size() - 2] =
        lowering.resultSectionSize(0, dim, 0, range.begin);
    padding[padding.size() - 1] =
        lowering.resultSectionSize(0, dim, range.end, shape[dim]);
    lowering.callAs("aten::constant_pad_nd", lowering.operands,
                    {OperandArg{0}, padding, Expr::constant(0)});
  };
  return rule;
}

/// select(x, dim, index), unbind(x, dim): the dim is whole, and no result has
/// it.
std::optional<OpRule> dropDim(const OpView &op) {
  OpRule rule;
  Shape shape = op.shape(0);
  int64_t dim = wrapDim(op.intAt(1, 0), shape.size());
  rule.operands.push_back(numbered(shape.size()));
  rule.operands[0][dim] = {};
  Labels piece = rule.operands[0];
  piece.erase(piece.begin() + dim);
  for (ValueId result : op.op.results)
    rule.results.push_back(result == None ? Labels() : piece);
  addLinear(rule, {0});
  rule.follows = true;
  return rule;
}

/// select_backward(gradient, input_sizes, dim, index).
std::optional<OpRule> selectBackward(const OpView &op) {
  OpRule rule;
  Shape shape = op.resultShape(0);
  int64_t dim = wrapDim(op.intAt(2, 0), shape.size());
  rule.results.push_back(numbered(shape.size()));
  rule.results[0][dim] = {};
  rule.operands.push_back(rule.results[0]);
  rule.operands[0].erase(rule.operands[0].begin() + dim);
  addLinear(rule, {0});
  return rule;
}

std::vector<int> everyOperand(const OpView &op) {
  std::vector<int> all;
  for (size_t k = 0; k < op.operandCount(); ++k)
    all.push_back(static_cast<int>(k));
  return all;
}

std::optional<OpRule> cat(const OpView &op) {
  OpRule rule;
  Shape shape = op.resultShape(0);
  int64_t dim = wrapDim(op.intAt(1, 0), shape.size());
  rule.results.push_back(numbered(shape.size()));
  int64_t begin = 0;
  for (size_t k = 0; k < op.operandCount(); ++k) {
    // Old programs join an empty list of numbers to a tensor of any rank.
    if (op.shape(k).size() != shape.size())
      return std::nullopt;
    int64_t size = op.shape(k)[dim];
    rule.operands.push_back(
        piece(rule.results[0], dim, begin, begin + size, shape[dim]));
    begin += size;
  }
  addLinear(rule, everyOperand(op));
  return rule;
}

std::optional<OpRule> stack(const OpView &op) {
  OpRule rule;
  Shape shape = op.resultShape(0);
  int64_t dim = wrapDim(op.intAt(1, 0), shape.size());
  rule.results.push_back(numbered(shape.size()));
  rule.results[0][dim] = {};
  Labels operand = rule.results[0];
  operand.erase(operand.begin() + dim);
  rule.operands.assign(op.operandCount(), operand);
  addLinear(rule, everyOperand(op));
  return rule;
}

/// constant_pad_nd(x, pad, value): padded dims are whole.
std::optional<OpRule> pad(const OpView &op) {
  OpRule rule;
  size_t rank = op.shape(0).size();
  rule.operands.push_back(numbered(rank));
  std::vector<int64_t> amounts = op.intsAt(1);
  for (size_t k = 0; k < amounts.size(); ++k)
    if (amounts[k] != 0)
      rule.operands[0][rank - 1 - k / 2] = {};
  rule.results.push_back(rule.operands[0]);
  if (op.numberAt(2).value_or(0.0) == 0.0)
    addLinear(rule, {0});
  return rule;
}

} // namespace

SliceRange sliceRange(const OpView &op, size_t argument, const Shape &shape) {
  int64_t dim = wrapDim(op.intAt(argument, 0), shape.size());
  int64_t size = shape[dim];
  SliceRange range{dim, clampBound(op.intAt(argument + 1, 0), size),
                   clampBound(op.intAt(argument + 2, size), size),
                   op.intAt(argument + 3, 1)};
  range.end = std::max(range.begin, range.end);
  return range;
}

Labels sliceLabels(const SliceRange &range, const Shape &shape) {
  Labels whole = numbered(shape.size());
  if (range.step != 1)
    whole[range.dim] = {};
  return whole;
}

Labels slicePiece(const Labels &whole, const SliceRange &range,
                  const Shape &shape) {
  if (whole[range.dim].name.empty())
    return whole;
  return piece(whole, range.dim, range.begin, range.end, shape[range.dim]);
}

void addSectionRules(RuleTable &table) {
  table["aten::split.Tensor"] = split;
  table["aten::split_with_sizes"] = split;
  table["aten::slice.Tensor"] = slice;
  table["aten::slice_backward"] = sliceBackward;
  table["aten::select.int"] = dropDim;
  table["aten::unbind.int"] = dropDim;
  table["aten::select_backward"] = selectBackward;
  table["aten::cat"] = cat;
  table["aten::stack"] = stack;
  table["aten::constant_pad_nd"] = pad;
}

} // namespace monarch
