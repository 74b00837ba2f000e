//===- Embedding.cpp - rules of embedding tables --------------------------===//
//
// A split vocabulary gives partial rows: each rank looks up the ids that it
// holds and has zeros for the others; positions come from the index list of the
// table's first dim. The gradient of a table is partial when rows of the batch
// are split.
//
//===----------------------------------------------------------------------===//
#include "core/registry/Registry.h"

namespace monarch {

namespace {

Labels indexLabels(size_t rank) {
  Labels names;
  for (size_t dim = 0; dim < rank; ++dim)
    names.push_back(DimLabel{"x" + std::to_string(dim)});
  return names;
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
  return rule;
}

} // namespace

void addEmbeddingRules(RuleTable &table) {
  table["aten::embedding"] = embedding;
  table["aten::embedding_dense_backward"] = embeddingBackward;
}

} // namespace monarch
