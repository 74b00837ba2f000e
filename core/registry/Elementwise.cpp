//===- Elementwise.cpp - rules of elementwise ops -------------------------===//
//
// Every dim may be split; an operand that repeats along a dim is replicated
// there. They differ in what passes partial sums on: sums pass all operands
// together, products one at a time, derivative ops f'(x) * g the gradient.
// Arguments are matched by their place in the schema: where a number stands in
// place of a tensor, a sum is no longer linear and a product still is.
//
//===----------------------------------------------------------------------===//
#include "core/registry/Body.h"
#include "core/registry/Registry.h"

#include <array>

namespace monarch {

namespace {

std::optional<OpRule> nonlinear(const OpView &op) { return elementwise(op); }

/// Linear in the first argument alone.
std::optional<OpRule> linearInFirst(const OpView &op) {
  OpRule rule = elementwise(op);
  if (int first = op.operandAt(0); first >= 0)
    addLinear(rule, {first});
  return rule;
}

/// Linear in the first two arguments together.
std::optional<OpRule> linearSum(const OpView &op) {
  OpRule rule = elementwise(op);
  int first = op.operandAt(0), second = op.operandAt(1);
  if (first >= 0 && second >= 0)
    addLinear(rule, {first, second});
  return rule;
}

/// Linear in each of the first two arguments while the other is complete.
std::optional<OpRule> linearProduct(const OpView &op) {
  OpRule rule = elementwise(op);
  for (size_t argument : {0, 1})
    if (int operand = op.operandAt(argument); operand >= 0)
      addLinear(rule, {operand});
  return rule;
}

/// A copy in another type or memory format: follows its neighbour. A cast to an
/// integer type rounds, so partial sums do not pass it.
std::optional<OpRule> cast(const OpView &op) {
  OpRule rule = elementwise(op);
  if (isFloating(op.resultType(0)))
    addLinear(rule, {0});
  rule.follows = true;
  // Its result is contiguous, as every result of its own is.
  rule.lower = [](Lowering &lowering) {
    Body body(lowering);
    Local made = body.cast(lowering.operands[0], lowering.resultType(0));
    lowering.results = {
        made.value == lowering.operands[0].value ? body.copy(made) : made};
  };
  return rule;
}

/// Two reals make a complex number: linear in both.
std::optional<OpRule> makeComplex(const OpView &op) {
  OpRule rule = elementwise(op);
  addLinear(rule, {0, 1});
  return rule;
}

/// where(condition, a, b).
std::optional<OpRule> where(const OpView &op) {
  OpRule rule = elementwise(op);
  int a = op.operandAt(1), b = op.operandAt(2);
  if (a >= 0 && b >= 0)
    addLinear(rule, {a, b});
  return rule;
}

/// masked_fill(x, mask, value): zeros in place of partial sums are partial.
std::optional<OpRule> maskedFill(const OpView &op) {
  OpRule rule = elementwise(op);
  if (op.numberAt(2) == 0.0)
    addLinear(rule, {0});
  return rule;
}

/// copy(self, source): self gives nothing but its shape.
std::optional<OpRule> copyInto(const OpView &op) {
  OpRule rule = elementwise(op);
  rule.shapeOnly = {0};
  addLinear(rule, {1});
  rule.lower = [](Lowering &lowering) {
    RoleWriter &writer = lowering.writer;
    Body body(lowering);
    std::vector<Expr> shape = lowering.resultShape(0);
    Local source = lowering.operands[1];
    Local wide =
        writer.call("aten::expand", {source}, {OperandArg{0}, shape, false},
                    body.type(source), shape);
    Local made = body.cast(wide, lowering.resultType(0));
    lowering.results = {made.value == wide.value ? body.copy(wide) : made};
  };
  return rule;
}

constexpr std::array Nonlinear = {
    "aten::pow.Tensor_Scalar",
    "aten::pow.Tensor_Tensor",
    "aten::pow.Scalar",
    "aten::rsqrt",
    "aten::sqrt",
    "aten::exp",
    "aten::log",
    "aten::log1p",
    "aten::expm1",
    "aten::erf",
    "aten::cos",
    "aten::sin",
    "aten::tanh",
    "aten::gelu",
    "aten::silu",
    "aten::relu",
    "aten::sigmoid",
    "aten::reciprocal",
    "aten::abs",
    "aten::sign",
    "aten::clamp",
    "aten::clamp_min",
    "aten::maximum",
    "aten::minimum",
    "aten::add.Scalar",
    "aten::sub.Scalar",
    "aten::rsub.Scalar",
    "aten::eq.Scalar",
    "aten::eq.Tensor",
    "aten::ne.Scalar",
    "aten::ne.Tensor",
    "aten::le.Scalar",
    "aten::le.Tensor",
    "aten::lt.Scalar",
    "aten::lt.Tensor",
    "aten::ge.Scalar",
    "aten::ge.Tensor",
    "aten::gt.Scalar",
    "aten::gt.Tensor",
    "aten::logical_and",
    "aten::logical_or",
    "aten::logical_not",
    "aten::bitwise_and.Tensor",
    "aten::bitwise_or.Tensor",
    "aten::bitwise_not",
    "aten::masked_fill.Tensor",
    "aten::isnan",
    "aten::polar",
};

constexpr std::array LinearInFirst = {
    "aten::neg",
    "aten::mul.Scalar",
    "aten::div.Scalar",
    "aten::div.Tensor",
    "aten::gelu_backward",
    "aten::silu_backward",
    "aten::tanh_backward",
    "aten::sigmoid_backward",
    "aten::threshold_backward",
    "aten::_conj_physical",
};

} // namespace

void addElementwiseRules(RuleTable &table) {
  for (const char *name : Nonlinear)
    table[name] = nonlinear;
  for (const char *name : LinearInFirst)
    table[name] = linearInFirst;
  table["aten::add.Tensor"] = linearSum;
  table["aten::sub.Tensor"] = linearSum;
  table["aten::lerp.Scalar"] = linearSum;
  table["aten::lerp.Tensor"] = linearSum;
  table["aten::mul.Tensor"] = linearProduct;
  table["aten::complex"] = makeComplex;
  table["aten::clone"] = cast;
  table["aten::_to_copy"] = cast;
  table["aten::where.self"] = where;
  table["aten::masked_fill.Scalar"] = maskedFill;
  table["aten::copy"] = copyInto;
}

} // namespace monarch
