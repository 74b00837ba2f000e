//===- GroupedMatmul.cpp - rules of products by group of rows -------------===//
//
// Columns are split as they are; split inner dims and split groups leave
// partial sums, since rows of groups that a rank does not hold give zeros. Rows
// are sorted by group and data say where each begins: a rank that holds some
// rows, in order, counts its own before each border.
//
//===----------------------------------------------------------------------===//
#include "core/registry/Body.h"
#include "core/registry/Registry.h"

namespace monarch {

namespace {

/// Ends of the groups held, and their begins, among the rows held.
struct Borders {
  Local begins, ends;
};

Borders bordersOf(Lowering &lowering, Local ends, Local heldGroups,
                  Local heldRows) {
  Body body(lowering);
  RoleWriter &writer = lowering.writer;
  ends = body.cast(ends, DType::Int64);
  const Expr count = body.shape(ends)[0];
  Local first = body.full({Expr::constant(1)}, 0, DType::Int64);
  Local all = writer.call("aten::cat", {first, ends},
                          {OperandListArg{{0, 1}}, Expr::constant(0)},
                          DType::Int64, {Expr::constant(1) + count});
  Local begins =
      body.copy(writer.call("aten::slice.Tensor", {all},
                            {OperandArg{0}, Expr::constant(0),
                             Expr::constant(0), count, Expr::constant(1)},
                            DType::Int64, {count}));
  auto local = [&](Local border) {
    if (heldGroups.defined())
      border = body.indexSelect(border, 0, heldGroups);
    if (heldRows.defined())
      border = writer.call("aten::searchsorted.Tensor", {heldRows, border},
                           {OperandArg{0}, OperandArg{1}, false, false,
                            std::monostate(), std::monostate()},
                           DType::Int64, body.shape(border));
    return border;
  };
  return {local(begins), local(ends)};
}

/// grouped_mm(x, weight, ends, begins?).
void lowerForward(Lowering &lowering) {
  if (!lowering.splits("t") && !lowering.splits("e"))
    return lowering.callItself();
  const Local groups =
      lowering.splits("e") ? lowering.operandIndices(1, 0) : Local();
  const Local rows =
      lowering.splits("t") ? lowering.operandIndices(0, 0) : Local();
  const auto &operands = lowering.operands;
  const Borders borders = bordersOf(lowering, operands[2], groups, rows);
  lowering.callAs(lowering.op.name,
                  {operands[0], operands[1], borders.ends, borders.begins},
                  {OperandArg{0}, OperandArg{1}, OperandArg{2}, OperandArg{3}});
}

std::optional<OpRule> groupedMatmul(const OpView &op) {
  if (op.operandCount() != 3)
    return std::nullopt;
  OpRule rule;
  rule.operands = {labels({"t", "k"}), labels({"e", "k", "n"}), labels({""})};
  rule.results = {labels({"t", "n"})};
  makePartial(rule, "k");
  makePartial(rule, "e");
  addLinear(rule, {0});
  addLinear(rule, {1});
  rule.lower = lowerForward;
  return rule;
}

/// grouped_mm_backward(gradient, x, weight, ends, begins?, need)
///   -> (dx, dweight).
void lowerBackward(Lowering &lowering) {
  if (!lowering.splits("t") && !lowering.splits("e"))
    return lowering.callItself();
  const Local groups =
      lowering.splits("e") ? lowering.operandIndices(2, 0) : Local();
  const Local rows =
      lowering.splits("t") ? lowering.operandIndices(0, 0) : Local();
  std::vector<Local> operands = lowering.operands;
  const Borders borders = bordersOf(lowering, operands[3], groups, rows);
  operands[3] = borders.ends;
  operands.push_back(borders.begins);
  lowering.callAs(lowering.op.name, operands,
                  {OperandArg{0}, OperandArg{1}, OperandArg{2}, OperandArg{3},
                   OperandArg{4}, lowering.localArg(5)});
}

std::optional<OpRule> groupedMatmulBackward(const OpView &op) {
  if (op.operandCount() != 4)
    return std::nullopt;
  OpRule rule;
  rule.operands = {labels({"t", "n"}), labels({"t", "k"}),
                   labels({"e", "k", "n"}), labels({""})};
  rule.results = {labels({"t", "k"}), labels({"e", "k", "n"})};
  for (size_t k = 0; k < rule.results.size(); ++k)
    if (op.op.results[k] == None)
      rule.results[k].clear();
  makePartial(rule, "n");
  makePartial(rule, "e");
  makePartial(rule, "t");
  addLinear(rule, {0});
  rule.lower = lowerBackward;
  return rule;
}

} // namespace

void addGroupedMatmulRules(RuleTable &table) {
  table["monarch::grouped_mm"] = groupedMatmul;
  table["monarch::grouped_mm_backward"] = groupedMatmulBackward;
}

} // namespace monarch
