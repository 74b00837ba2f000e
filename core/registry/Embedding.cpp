//===- Embedding.cpp - rules of embedding tables --------------------------===//
//
// A split vocabulary gives partial rows: each rank looks up the ids that it
// holds and has zeros for the others; positions come from the index list of the
// table's first dim. The gradient of a table is partial when rows of the batch
// are split.
//
//===----------------------------------------------------------------------===//
#include "core/registry/Body.h"
#include "core/registry/Registry.h"

namespace monarch {

namespace {

Labels indexLabels(size_t rank) {
  Labels names;
  for (size_t dim = 0; dim < rank; ++dim)
    names.push_back(DimLabel{"x" + std::to_string(dim)});
  return names;
}

/// Where each id lies in the held part of a dim of `size` ids, -1 for ids that
/// are held elsewhere; one-dimensional.
Local heldPositions(Lowering &lowering, Body &body, Local ids, int64_t size,
                    const ShardRef &held) {
  ShardRef whole = lowering.writer.shard({plainDim(size), {}});
  Local table = lowering.writer.index({{whole}, {held}});
  Expr count = Expr::constant(1);
  for (const Expr &extent : body.shape(ids))
    count = count * extent;
  Local flat = body.cast(body.view(ids, {count}), DType::Int64);
  return body.indexSelect(table, 0, flat);
}

/// Rows of the held part of the table, zeros for ids held elsewhere.
void lowerLookup(Lowering &lowering) {
  Body body(lowering);
  RoleWriter &writer = lowering.writer;
  Local weight = lowering.operands[0];
  DType type = body.type(weight);
  ShardRef held = lowering.operandShard(0, 0);
  Local position =
      heldPositions(lowering, body, lowering.operands[1],
                    lowering.globalSize(lowering.op.operands[0], 0), held);
  std::vector<Expr> rows = {body.shape(position)[0], body.shape(weight)[1]};
  Local looked;
  if (lowering.mayBeEmpty(held)) {
    // A row of zeros in front: every position exists, whatever is held.
    std::vector<Expr> padded = {Expr::constant(1) + body.shape(weight)[0],
                                rows[1]};
    Local zero = body.full({Expr::constant(1), rows[1]}, 0.0, type);
    Local table =
        writer.call("aten::cat", {zero, weight},
                    {OperandListArg{{0, 1}}, Expr::constant(0)}, type, padded);
    looked = body.indexSelect(table, 0, body.add(position, 1));
  } else {
    Local missing = body.compare("aten::lt.Scalar", position, 0);
    looked = body.indexSelect(weight, 0, body.maskedFill(position, missing, 0));
    looked = body.maskedFill(looked, body.unsqueeze(missing, 1), 0);
  }
  lowering.results = {body.view(looked, lowering.resultShape(0))};
}

/// embedding(weight, indices, padding_idx, scale_grad_by_freq, sparse).
std::optional<OpRule> embedding(const OpView &op) {
  OpRule rule;
  Labels indices = indexLabels(op.shape(1).size());
  rule.operands = {labels({"v", "e"}), indices};
  rule.results = {indices};
  rule.results[0].push_back(DimLabel{"e"});
  makePartial(rule, "v");
  addLinear(rule, {0});
  rule.lower = [](Lowering &lowering) {
    if (lowering.splits("v"))
      lowerLookup(lowering);
    else
      lowering.callItself();
  };
  return rule;
}

/// embedding_dense_backward(gradient, indices, num_weights, padding_idx,
/// scale_grad_by_freq).
std::optional<OpRule> embeddingBackward(const OpView &op) {
  if (op.boolAt(4, false))
    return std::nullopt;
  OpRule rule;
  Labels indices = indexLabels(op.shape(1).size());
  rule.operands = {indices, indices};
  rule.operands[0].push_back(DimLabel{"e"});
  rule.results = {labels({"v", "e"})};
  for (const DimLabel &label : indices)
    makePartial(rule, label.name);
  addLinear(rule, {0});
  rule.lower = [padding = op.intAt(3, -1)](Lowering &lowering) {
    if (!lowering.splits("v"))
      return lowering.callItself();
    Body body(lowering);
    Local ids = lowering.operands[1];
    // The kernel skips ids that equal padding_idx, which -1 stands for below.
    Local position = heldPositions(
        lowering, body, ids, lowering.globalSize(lowering.op.results[0], 0),
        lowering.resultShard(0, 0));
    if (padding >= 0) {
      Local flat = body.view(ids, body.shape(position));
      position = body.maskedFill(
          position,
          body.compare("aten::eq.Scalar", flat, static_cast<double>(padding)),
          -1);
    }
    position = body.view(position, body.shape(ids));
    lowering.callAs("aten::embedding_dense_backward",
                    {lowering.operands[0], position},
                    {OperandArg{0}, OperandArg{1}, lowering.resultShape(0)[0],
                     Expr::constant(-1), false});
  };
  return rule;
}

} // namespace

void addEmbeddingRules(RuleTable &table) {
  table["aten::embedding"] = embedding;
  table["aten::embedding_dense_backward"] = embeddingBackward;
}

} // namespace monarch
