//===- Attention.cpp - rules of attention ---------------------------------===//
//
// q [b h q d], k [b h s d], v [b h s e] -> out [b h q e], logsumexp [b h q].
// Batch, heads, queries and e are split as they are. A split s or d runs
// spelled out: scores are all-reduced over d before masks; the largest and the
// sum of exponentials over s, which leaves out partial.
//
//===----------------------------------------------------------------------===//
#include "core/registry/Registry.h"

namespace monarch {

namespace {

Labels maskLabels(const OpView &op, int mask, int q, int k) {
  Shape queries = op.shape(q), keys = op.shape(k);
  Shape scores = {queries[0], queries[1], queries[2], keys[2]};
  return broadcast(op.shape(mask), scores, labels({"b", "h", "q", "s"}));
}

bool sameHeads(const OpView &op, int q, int k) {
  return op.shape(q).size() == 4 && op.shape(k).size() == 4 &&
         op.shape(q)[1] == op.shape(k)[1];
}

/// attention(q, k, v, mask?, is_causal, scale) -> (out, logsumexp).
std::optional<OpRule> attention(const OpView &op) {
  if (!sameHeads(op, 0, 1))
    return std::nullopt;
  OpRule rule;
  rule.operands = {labels({"b", "h", "q", "d"}), labels({"b", "h", "s", "d"}),
                   labels({"b", "h", "s", "e"})};
  if (int mask = op.operandAt(3); mask >= 0)
    rule.operands.push_back(maskLabels(op, mask, 0, 1));
  rule.results = {labels({"b", "h", "q", "e"}), labels({"b", "h", "q"})};
  rule.effects["s"].results = {AxisStateKind::Partial,
                               AxisStateKind::Replicated};
  rule.linear.push_back({{2}, {0}});
  return rule;
}

/// attention_backward(grad_out, q, k, v, mask?, out, logsumexp, is_causal,
/// scale, need[4]) -> (dq, dk, dv, dmask).
std::optional<OpRule> attentionBackward(const OpView &op) {
  int q = op.operandAt(1), k = op.operandAt(2);
  if (!sameHeads(op, q, k))
    return std::nullopt;
  const Labels query = labels({"b", "h", "q", "d"}),
               key = labels({"b", "h", "s", "d"}),
               value = labels({"b", "h", "s", "e"}),
               out = labels({"b", "h", "q", "e"});
  OpRule rule;
  rule.operands.resize(op.operandCount());
  rule.operands[op.operandAt(0)] = out;
  rule.operands[q] = query;
  rule.operands[k] = key;
  rule.operands[op.operandAt(3)] = value;
  rule.operands[op.operandAt(5)] = out;
  rule.operands[op.operandAt(6)] = labels({"b", "h", "q"});
  rule.results = {query, key, value, {}};
  if (int mask = op.operandAt(4); mask >= 0) {
    rule.operands[mask] = maskLabels(op, mask, q, k);
    rule.results[3] = rule.operands[mask];
  }
  for (size_t k = 0; k < 4; ++k)
    if (op.op.results[k] == None)
      rule.results[k].clear();
  // dk and dv sum over queries, dq over keys; a mask that repeats along a dim
  // sums over it.
  for (const char *label : {"b", "h", "q", "s"})
    makePartial(rule, label);
  addLinear(rule, {op.operandAt(0)});
  return rule;
}

} // namespace

void addAttentionRules(RuleTable &table) {
  table["monarch::attention"] = attention;
  table["monarch::attention_backward"] = attentionBackward;
}

} // namespace monarch
