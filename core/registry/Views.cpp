//===- Views.cpp - rules of views, transposes and expansions --------------===//
//
// All are linear and follow their neighbour. A view's dims are its operand's,
// regrouped row-major; the labels come from the factors that match. Locally a
// view is the operand in the result's local shape. An expansion's new dims may
// be split: each rank then repeats its operand less often.
//
//===----------------------------------------------------------------------===//
#include "core/registry/Body.h"
#include "core/registry/Registry.h"

namespace monarch {

namespace {

OpRule following(OpRule rule) {
  addLinear(rule, {0});
  rule.follows = true;
  return rule;
}

std::vector<int64_t> identityOrder(size_t rank) {
  std::vector<int64_t> order(rank);
  for (size_t dim = 0; dim < rank; ++dim)
    order[dim] = static_cast<int64_t>(dim);
  return order;
}

OpRule viewRule(const OpView &op) {
  OpRule rule = following(unlabelled(op));
  rule.isView = true;
  return rule;
}

std::optional<OpRule> view(const OpView &op) {
  OpRule rule = viewRule(op);
  rule.lower = [](Lowering &lowering) {
    lowering.callAs("aten::view", lowering.operands,
                    {OperandArg{0}, lowering.resultShape(0)});
  };
  return rule;
}

std::optional<OpRule> unsqueeze(const OpView &op) { return viewRule(op); }

/// Drops dims that have size 1 everywhere, never those that have it locally.
std::optional<OpRule> squeeze(const OpView &op) {
  OpRule rule = viewRule(op);
  Shape shape = op.shape(0);
  std::vector<int64_t> asked = op.intsAt(1);
  if (op.op.name == "aten::squeeze")
    asked = identityOrder(shape.size());
  std::vector<Expr> dims;
  for (int64_t dim : asked)
    if (shape[wrapDim(dim, shape.size())] == 1)
      dims.push_back(Expr::constant(wrapDim(dim, shape.size())));
  rule.lower = [dims](Lowering &lowering) {
    if (dims.empty())
      lowering.callAs("aten::alias", lowering.operands, {OperandArg{0}});
    else
      lowering.callAs("aten::squeeze.dims", lowering.operands,
                      {OperandArg{0}, dims});
  };
  return rule;
}

std::optional<OpRule> permuted(const OpView &op,
                               const std::vector<int64_t> &order) {
  OpRule rule;
  rule.operands.push_back(numbered(order.size()));
  rule.results.emplace_back();
  for (int64_t dim : order)
    rule.results[0].push_back(
        rule.operands[0][wrapDim(dim, op.shape(0).size())]);
  return following(std::move(rule));
}

std::optional<OpRule> transpose(const OpView &op) {
  size_t rank = op.shape(0).size();
  std::vector<int64_t> order = identityOrder(rank);
  if (rank > 0)
    std::swap(order[wrapDim(op.intAt(1, 0), rank)],
              order[wrapDim(op.intAt(2, 1), rank)]);
  return permuted(op, order);
}

std::optional<OpRule> matrixTranspose(const OpView &op) {
  std::vector<int64_t> order = identityOrder(op.shape(0).size());
  if (order.size() == 2)
    std::swap(order[0], order[1]);
  return permuted(op, order);
}

std::optional<OpRule> permute(const OpView &op) {
  return permuted(op, op.intsAt(1));
}

/// The pairs' dim belongs to one rank; all others are as they were. The result
/// is a tensor of its own: an op of no view, to the program.
OpRule pairs(const OpView &op) {
  OpRule rule;
  const size_t dims = std::max(op.shape(0).size(), op.resultShape(0).size());
  Labels paired = numbered(dims - 1), plain = paired;
  paired.emplace_back();
  const bool makesComplex = op.shape(0).size() == dims;
  rule.operands = {makesComplex ? paired : plain};
  rule.results = {makesComplex ? plain : paired};
  return following(std::move(rule));
}

std::optional<OpRule> viewAsReal(const OpView &op) { return pairs(op); }

/// Its operand must be contiguous, which a local part of it need not be.
std::optional<OpRule> viewAsComplex(const OpView &op) {
  OpRule rule = pairs(op);
  rule.lower = [](Lowering &lowering) {
    Body body(lowering);
    lowering.callAs("aten::view_as_complex", {body.copy(lowering.operands[0])},
                    {OperandArg{0}});
  };
  return rule;
}

std::optional<OpRule> expand(const OpView &op) {
  return following(elementwise(op));
}

} // namespace

void addViewRules(RuleTable &table) {
  for (const char *name : {"aten::view", "aten::_unsafe_view", "aten::reshape"})
    table[name] = view;
  for (const char *name :
       {"aten::squeeze", "aten::squeeze.dim", "aten::squeeze.dims"})
    table[name] = squeeze;
  table["aten::view_as_real"] = viewAsReal;
  table["aten::view_as_complex"] = viewAsComplex;
  table["aten::unsqueeze"] = unsqueeze;
  table["aten::t"] = matrixTranspose;
  table["aten::transpose.int"] = transpose;
  table["aten::permute"] = permute;
  table["aten::expand"] = expand;
}

} // namespace monarch
