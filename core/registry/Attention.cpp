//===- Attention.cpp - rules of attention ---------------------------------===//
//
// q [b h q d], k [b h s d], v [b h s e] -> out [b h q e], logsumexp [b h q].
// Batch, heads, queries and e are split as they are. A split s or d runs
// spelled out: scores are all-reduced over d before masks; the largest and the
// sum of exponentials over s, which leaves out partial.
//
//===----------------------------------------------------------------------===//
#include "core/registry/Body.h"
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

/// What forward and backward share when scores are spelled out.
struct Scores {
  int q, k, mask;
  bool isCausal;
  double scale;
};

/// The kernel counts causal rows from the top left of what it is given, and
/// sums over what it is given.
bool needsBody(const Lowering &lowering, bool isCausal) {
  return lowering.splits("s") || lowering.splits("d") ||
         (isCausal && lowering.splits("q"));
}

/// q k^T * scale, summed over d, with masks: [B, H, Q, S].
Local writeScores(Lowering &lowering, Body &body, const Scores &at,
                  DType type) {
  Local q = body.cast(lowering.operands[at.q], type);
  Local k = body.cast(lowering.operands[at.k], type);
  Local scores = body.mul(
      body.matmul(q, k, /*transposeA=*/false, /*transposeB=*/true), at.scale);
  scores = body.allReduceSum(scores, lowering.axesOf({"d"}));
  if (at.mask >= 0) {
    Local mask = lowering.operands[at.mask];
    scores =
        body.type(mask) == DType::Bool
            ? body.maskedFill(scores, body.logicalNot(mask), NegativeInfinity)
            : body.add(scores, body.cast(mask, type));
  }
  if (at.isCausal) {
    Local row = body.unsqueeze(lowering.operandIndices(at.q, 2), 1);
    Local later = body.greater(lowering.operandIndices(at.k, 2), row);
    scores = body.maskedFill(scores, later, NegativeInfinity);
  }
  return scores;
}

Local probabilities(Body &body, Local scores, Local logSumExp) {
  return body.exp(body.sub(scores, body.unsqueeze(logSumExp, 3)));
}

void lowerForward(Lowering &lowering, const Scores &at, int v) {
  if (!needsBody(lowering, at.isCausal))
    return lowering.callItself();
  Body body(lowering);
  DType type = lowering.resultType(1);
  Local scores = writeScores(lowering, body, at, type);
  Local logSumExp = body.allReduceLogSumExp(
      body.logSumExp(scores, {3}, /*keepDims=*/false), lowering.axesOf({"s"}));
  // 0 where a row sees nothing: its probabilities are then zeros.
  Local blind = body.compare("aten::eq.Scalar", logSumExp, NegativeInfinity);
  logSumExp = body.maskedFill(logSumExp, blind, 0);
  Local out = body.matmul(probabilities(body, scores, logSumExp),
                          body.cast(lowering.operands[v], type));
  lowering.results = {body.cast(out, lowering.resultType(0)), logSumExp};
}

/// attention(q, k, v, mask?, is_causal, scale) -> (out, logsumexp).
std::optional<OpRule> attention(const OpView &op) {
  if (!sameHeads(op, 0, 1))
    return std::nullopt;
  OpRule rule;
  rule.operands = {labels({"b", "h", "q", "d"}), labels({"b", "h", "s", "d"}),
                   labels({"b", "h", "s", "e"})};
  Scores at{0, 1, op.operandAt(3), op.boolAt(4, false),
            op.numberAt(5).value_or(1.0)};
  if (at.mask >= 0)
    rule.operands.push_back(maskLabels(op, at.mask, 0, 1));
  rule.results = {labels({"b", "h", "q", "e"}), labels({"b", "h", "q"})};
  rule.effects["s"].results = {AxisStateKind::Partial,
                               AxisStateKind::Replicated};
  rule.linear.push_back({{2}, {0}});
  rule.lower = [at](Lowering &lowering) { lowerForward(lowering, at, 2); };
  return rule;
}

struct Backward {
  Scores scores;
  int gradient, v, out, logSumExp;
  /// Dims along which the mask repeats, under equal and fewer dims.
  Shape maskShape;
};

/// The mask's gradient: that of the scores, summed where the mask repeats.
Local maskGradient(Body &body, Local scores, const Shape &maskShape,
                   const std::vector<Expr> &shape) {
  std::vector<int64_t> dims;
  size_t missing = 4 - maskShape.size();
  for (size_t dim = 0; dim < 4; ++dim)
    if (dim < missing || maskShape[dim - missing] == 1)
      dims.push_back(static_cast<int64_t>(dim));
  Local sum = dims.empty() ? body.copy(scores)
                           : body.sum(scores, dims, /*keepDims=*/true);
  return missing == 0 ? sum : body.view(sum, shape);
}

void lowerBackward(Lowering &lowering, const Backward &at) {
  if (!needsBody(lowering, at.scores.isCausal) && !lowering.splits("e"))
    return lowering.callItself();
  Body body(lowering);
  DType type = body.type(lowering.operands[at.logSumExp]);
  auto operand = [&](int place) {
    return body.cast(lowering.operands[place], type);
  };
  const std::vector<ValueId> &wanted = lowering.op.results;
  Local g = operand(at.gradient);
  Local p = probabilities(body, writeScores(lowering, body, at.scores, type),
                          lowering.operands[at.logSumExp]);
  lowering.results.assign(4, Local());
  auto result = [&](int k, Local value) {
    lowering.results[k] = body.cast(value, lowering.resultType(k));
  };
  if (wanted[2] != None)
    result(2, body.matmul(p, g, /*transposeA=*/true));
  // Both g v^T and sum(g out) are partial when e is split.
  Local product = body.matmul(g, operand(at.v), false, /*transposeB=*/true);
  Local along = body.sum(body.mul(g, operand(at.out)), {3}, /*keepDims=*/true);
  Local centred =
      body.allReduceSum(body.sub(product, along), lowering.axesOf({"e"}));
  Local scores = body.mul(p, centred);
  double scale = at.scores.scale;
  if (wanted[0] != None)
    result(0, body.mul(body.matmul(scores, operand(at.scores.k)), scale));
  if (wanted[1] != None)
    result(1, body.mul(body.matmul(scores, operand(at.scores.q),
                                   /*transposeA=*/true),
                       scale));
  if (wanted[3] != None)
    result(3,
           maskGradient(body, scores, at.maskShape, lowering.resultShape(3)));
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
  Backward at;
  at.scores = {q, k, op.operandAt(4), op.boolAt(7, false),
               op.numberAt(8).value_or(1.0)};
  at.gradient = op.operandAt(0);
  at.v = op.operandAt(3);
  at.out = op.operandAt(5);
  at.logSumExp = op.operandAt(6);
  if (at.scores.mask >= 0)
    at.maskShape = op.shape(at.scores.mask);
  rule.lower = [at](Lowering &lowering) { lowerBackward(lowering, at); };
  return rule;
}

} // namespace

void addAttentionRules(RuleTable &table) {
  table["monarch::attention"] = attention;
  table["monarch::attention_backward"] = attentionBackward;
}

} // namespace monarch
