//===- Creation.cpp - rules of tensors made from nothing ------------------===//
//
// Every dim of the result may be split: a constant fills the local shape, a
// range takes the local index list. Operands give their shape and type only.
//
//===----------------------------------------------------------------------===//
#include "core/registry/Body.h"
#include "core/registry/Registry.h"

#include <cmath>

namespace monarch {

namespace {

/// The number that fills: a literal at this place, or a constant.
struct Filling {
  int argument = -1;
  int64_t constant = 0;
};

/// `full`, `zeros`, `ones`, and their new_ and _like forms.
OpRule filled(const OpView &op, Filling filling) {
  OpRule rule = elementwise(op);
  for (size_t k = 0; k < op.operandCount(); ++k)
    rule.shapeOnly.push_back(static_cast<int>(k));
  // new_zeros and the like: the operand's shape is not the result's.
  if (op.operandCount() > 0 && op.shape(0) != op.resultShape(0))
    rule.operands[0] = Labels(op.shape(0).size());
  rule.lower = [filling](Lowering &lowering) {
    CallArg number = filling.argument < 0 ? Expr::constant(filling.constant)
                                          : lowering.localArg(filling.argument);
    lowering.callAs("aten::full", {},
                    {lowering.resultShape(0), number, lowering.resultType(0),
                     std::monostate(), std::monostate(), std::monostate()});
  };
  return rule;
}

template <int Argument, int64_t Constant>
std::optional<OpRule> filledWith(const OpView &op) {
  return filled(op, {Argument, Constant});
}

/// arange(start, end, step, ...): start + step * index.
std::optional<OpRule> range(const OpView &op) {
  OpRule rule = unlabelled(op);
  rule.results[0] = labels({"i"});
  bool hasStart = op.op.name != "aten::arange";
  bool hasStep = op.op.name == "aten::arange.start_step";
  double first = hasStart ? op.numberAt(0).value_or(0) : 0;
  double distance = hasStep ? op.numberAt(2).value_or(1) : 1;
  bool isWhole = std::trunc(first) == first && std::trunc(distance) == distance;
  bool isInteger = !isFloating(op.resultType(0));
  if (isInteger && !isWhole)
    return std::nullopt;
  rule.lower = [=](Lowering &lowering) {
    if (!lowering.splits("i"))
      return lowering.callItself();
    RoleWriter &writer = lowering.writer;
    DType type = lowering.resultType(0);
    std::vector<Expr> shape = lowering.resultShape(0);
    // Integers stay integers, also where the model wrote 2.0.
    auto number = [&](double value) {
      return isWhole ? CallArg(Expr::constant(static_cast<int64_t>(value)))
                     : CallArg(value);
    };
    CallArg start = number(first), step = number(distance);
    // In the result's type from the first, for fractional steps.
    Local value = Body(lowering).cast(lowering.resultIndices(0, 0), type);
    value = writer.call("aten::mul.Scalar", {value}, {OperandArg{0}, step},
                        type, shape);
    lowering.results = {writer.call("aten::add.Scalar", {value},
                                    {OperandArg{0}, start, Expr::constant(1)},
                                    type, shape)};
  };
  return rule;
}

/// eye(n), eye(n, m): ones where row and column agree.
std::optional<OpRule> identityMatrix(const OpView &op) {
  OpRule rule = unlabelled(op);
  rule.results[0] = labels({"i", "j"});
  rule.lower = [](Lowering &lowering) {
    if (!lowering.splits("i") && !lowering.splits("j"))
      return lowering.callItself();
    Body body(lowering);
    std::vector<Expr> shape = lowering.resultShape(0);
    Local rows =
        body.view(lowering.resultIndices(0, 0), {shape[0], Expr::constant(1)});
    Local hits = lowering.writer.call(
        "aten::eq.Tensor", {rows, lowering.resultIndices(0, 1)},
        {OperandArg{0}, OperandArg{1}}, DType::Bool, shape);
    lowering.results = {body.cast(hits, lowering.resultType(0))};
  };
  return rule;
}

} // namespace

void addCreationRules(RuleTable &table) {
  table["aten::full"] = filledWith<1, 0>;
  table["aten::new_full"] = filledWith<2, 0>;
  table["aten::full_like"] = filledWith<1, 0>;
  table["aten::fill.Scalar"] = filledWith<1, 0>;
  table["aten::scalar_tensor"] = filledWith<0, 0>;
  for (const char *name :
       {"aten::zeros", "aten::new_zeros", "aten::zeros_like"})
    table[name] = filledWith<-1, 0>;
  for (const char *name : {"aten::ones", "aten::new_ones", "aten::ones_like"})
    table[name] = filledWith<-1, 1>;
  table["aten::eye"] = identityMatrix;
  table["aten::eye.m"] = identityMatrix;
  table["aten::arange"] = range;
  table["aten::arange.start"] = range;
  table["aten::arange.start_step"] = range;
}

} // namespace monarch
