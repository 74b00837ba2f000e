//===- EmbeddingBag.cpp - rules of sums of table rows ---------------------===//
//
// Bags of ids in rows ([bags, ids]) are split like rows; bags in one list are
// whole. A split table gives partial sums: each rank adds the rows that it
// holds. Split ids of a bag do so too, but not under a mean, which divides by
// the ids of the whole bag.
//
//===----------------------------------------------------------------------===//
#include "core/registry/Body.h"
#include "core/registry/Registry.h"

namespace monarch {

namespace {

/// Places of operands, -1: absent.
struct Operands {
  int weight, indices, offsets, rowWeights;
  /// The op's argument that maps ids to rows held here.
  size_t heldArgument;
};

/// Labels of the ids and of the bags of a result.
struct BagLabels {
  Labels ids;
  DimLabel bags;
};

BagLabels labelBags(OpRule &rule, const OpView &op, const Operands &at,
                    int64_t mode) {
  BagLabels names{labels({""}), {}};
  if (at.offsets < 0) {
    names.ids = labels({"b", "l"});
    names.bags = {"b"};
    constexpr int64_t Mean = 1;
    rule.effects["l"].whole = mode == Mean;
  }
  rule.operands.resize(op.operandCount());
  rule.operands[at.indices] = names.ids;
  if (at.offsets >= 0)
    rule.operands[at.offsets] = labels({""});
  if (at.rowWeights >= 0)
    rule.operands[at.rowWeights] = names.ids;
  return names;
}

/// The op with the map from ids to the table rows of this shard.
void callWithHeld(Lowering &lowering, const Operands &at, int64_t tableRows,
                  const ShardRef &held) {
  RoleWriter &writer = lowering.writer;
  ShardRef whole = writer.shard({plainDim(tableRows), {}});
  std::vector<CallArg> args;
  for (size_t k = 0; k < lowering.op.args.size(); ++k)
    args.push_back(lowering.localArg(k));
  args[at.heldArgument] =
      OperandArg{static_cast<int>(lowering.operands.size())};
  std::vector<Local> operands = lowering.operands;
  operands.push_back(writer.index({{whole}, {held}}));
  lowering.callAs(lowering.op.name, operands, args);
}

/// embedding_bag(weight, indices, offsets?, row_weights?, mode, includes_last,
/// padding, held?).
std::optional<OpRule> embeddingBag(const OpView &op) {
  const Operands at{op.operandAt(0), op.operandAt(1), op.operandAt(2),
                    op.operandAt(3), /*held=*/7};
  OpRule rule;
  BagLabels names = labelBags(rule, op, at, op.intAt(4, 0));
  rule.operands[at.weight] = labels({"v", "e"});
  rule.results = {{names.bags, DimLabel{"e"}}};
  makePartial(rule, "v");
  if (at.offsets < 0 && !rule.effects["l"].whole)
    makePartial(rule, "l");
  addLinear(rule, {at.weight});
  if (at.rowWeights >= 0)
    addLinear(rule, {at.rowWeights});
  rule.lower = [at, rows = op.shape(at.weight)[0]](Lowering &lowering) {
    if (lowering.splits("v"))
      callWithHeld(lowering, at, rows, lowering.operandShard(at.weight, 0));
    else
      lowering.callItself();
  };
  return rule;
}

/// embedding_bag_backward(gradient, weight?, indices, offsets?, row_weights?,
/// mode, includes_last, padding, table_rows, held?, need)
///   -> (dweight, drow_weights).
std::optional<OpRule> embeddingBagBackward(const OpView &op) {
  const Operands at{op.operandAt(1), op.operandAt(2), op.operandAt(3),
                    op.operandAt(4), /*held=*/9};
  const bool hasWeight = op.op.results[0] != None;
  if (!hasWeight && at.weight < 0)
    return std::nullopt;
  OpRule rule;
  BagLabels names = labelBags(rule, op, at, op.intAt(5, 0));
  rule.operands[0] = {names.bags, DimLabel{"e"}};
  if (at.weight >= 0)
    rule.operands[at.weight] = labels({"v", "e"});
  rule.results.resize(2);
  if (hasWeight)
    rule.results[0] = labels({"v", "e"});
  if (op.op.results[1] != None)
    rule.results[1] = names.ids;
  // Each result is a sum over the labels that it lacks.
  makePartial(rule, "v");
  makePartial(rule, "e");
  if (at.offsets < 0) {
    makePartial(rule, "b");
    if (!rule.effects["l"].whole)
      makePartial(rule, "l");
  }
  addLinear(rule, {0});
  const int64_t rows =
      hasWeight ? op.resultShape(0)[0] : op.shape(at.weight)[0];
  rule.lower = [at, rows, hasWeight](Lowering &lowering) {
    if (!lowering.splits("v"))
      return lowering.callItself();
    callWithHeld(lowering, at, rows,
                 hasWeight ? lowering.resultShard(0, 0)
                           : lowering.operandShard(at.weight, 0));
  };
  return rule;
}

} // namespace

void addEmbeddingBagRules(RuleTable &table) {
  table["monarch::embedding_bag"] = embeddingBag;
  table["monarch::embedding_bag_backward"] = embeddingBagBackward;
}

} // namespace monarch
