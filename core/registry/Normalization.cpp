//===- Normalization.cpp - rules and bodies of layer norm -----------------===//
//
// Rows are independent. A split normalised dim takes two all-reduces forward
// (the mean, then the centred squares) and two backward (the sums of g w and
// g w x^), divided by the global count.
//
//===----------------------------------------------------------------------===//
#include "core/registry/Body.h"
#include "core/registry/Registry.h"

namespace monarch {

namespace {

/// What both directions know: which dims are normalised, and how many elements
/// they have in all.
struct Norm {
  size_t rank = 0;
  std::vector<int64_t> rows, dims;
  std::vector<std::string> normalizedLabels;
  int64_t count = 1;
  Labels all, normalized, statistics;
};

Norm normOf(const Shape &shape, size_t normalizedRank) {
  Norm norm;
  norm.rank = shape.size();
  norm.all = numbered(norm.rank);
  norm.statistics = norm.all;
  for (size_t dim = 0; dim < norm.rank; ++dim) {
    if (dim + normalizedRank < norm.rank) {
      norm.rows.push_back(static_cast<int64_t>(dim));
      continue;
    }
    norm.dims.push_back(static_cast<int64_t>(dim));
    norm.normalized.push_back(norm.all[dim]);
    norm.normalizedLabels.push_back(norm.all[dim].name);
    norm.statistics[dim] = {};
    norm.count *= shape[dim];
  }
  return norm;
}

/// native_layer_norm(x, normalized_shape, weight?, bias?, eps)
///   -> (y, mean, rstd).
void lowerForward(Lowering &lowering, const Norm &norm, int weight, int bias,
                  double epsilon) {
  std::vector<int> axes = lowering.axesOf(norm.normalizedLabels);
  if (axes.empty())
    return lowering.callItself();
  Body body(lowering);
  DType type = lowering.resultType(0), statistics = lowering.resultType(1);
  Local x = body.cast(lowering.operands[0], statistics);
  auto mean = [&](Local values) {
    Local sum =
        body.allReduceSum(body.sum(values, norm.dims, /*keepDims=*/true), axes);
    return body.divide(sum, norm.count);
  };
  Local average = mean(x);
  Local centred = body.sub(x, average);
  Local rstd = body.rsqrt(body.add(mean(body.mul(centred, centred)), epsilon));
  Local y = body.mul(centred, rstd);
  if (weight >= 0)
    y = body.mul(y, body.cast(lowering.operands[weight], statistics));
  if (bias >= 0)
    y = body.add(y, body.cast(lowering.operands[bias], statistics));
  lowering.results = {body.cast(y, type), average, rstd};
}

/// native_layer_norm_backward(g, x, normalized_shape, mean, rstd, weight?,
/// bias?, output_mask) -> (dx, dweight, dbias).
struct BackwardOperands {
  int gradient, x, mean, rstd, weight, bias;
};

void lowerBackward(Lowering &lowering, const Norm &norm,
                   const BackwardOperands &at) {
  std::vector<int> axes = lowering.axesOf(norm.normalizedLabels);
  const std::vector<Local> &operands = lowering.operands;
  if (axes.empty()) {
    std::vector<CallArg> args;
    for (size_t k = 0; k < lowering.op.args.size(); ++k)
      args.push_back(lowering.localArg(k));
    // The bias is looked at for its shape alone: the weight's.
    std::vector<Local> read = operands;
    if (at.bias >= 0 && !read[at.bias].defined())
      read[at.bias] = read[at.weight];
    return lowering.callAs(lowering.op.name, read, args);
  }
  Body body(lowering);
  DType type = body.type(operands[at.mean]);
  auto result = [&](size_t k, Local value) {
    lowering.results.push_back(
        lowering.op.results[k] == None
            ? Local()
            : body.cast(value, lowering.resultType(static_cast<int>(k))));
  };
  Local g = body.cast(operands[at.gradient], type);
  Local x = body.cast(operands[at.x], type);
  Local normalized =
      body.mul(body.sub(x, operands[at.mean]), operands[at.rstd]);
  Local weighted =
      at.weight >= 0 ? body.mul(g, body.cast(operands[at.weight], type)) : g;
  auto mean = [&](Local values) {
    Local sum =
        body.allReduceSum(body.sum(values, norm.dims, /*keepDims=*/true), axes);
    return body.divide(sum, norm.count);
  };
  Local along = mean(body.mul(weighted, normalized));
  Local dx =
      body.sub(body.sub(weighted, mean(weighted)), body.mul(normalized, along));
  lowering.results.clear();
  result(0, body.mul(dx, operands[at.rstd]));
  if (lowering.op.results[1] != None)
    result(1, body.sum(body.mul(g, normalized), norm.rows, false));
  else
    lowering.results.emplace_back();
  if (lowering.op.results[2] != None)
    result(2, norm.rows.empty() ? body.copy(g) : body.sum(g, norm.rows, false));
  else
    lowering.results.emplace_back();
}

std::optional<OpRule> layerNorm(const OpView &op) {
  Norm norm = normOf(op.shape(0), op.intsAt(1).size());
  OpRule rule;
  rule.operands.assign(op.operandCount(), norm.normalized);
  rule.operands[0] = norm.all;
  rule.results = {norm.all, norm.statistics, norm.statistics};
  rule.lower = [norm, weight = op.operandAt(2), bias = op.operandAt(3),
                epsilon = op.numberAt(4).value_or(1e-5)](Lowering &lowering) {
    lowerForward(lowering, norm, weight, bias, epsilon);
  };
  return rule;
}

std::optional<OpRule> layerNormBackward(const OpView &op) {
  BackwardOperands at{op.operandAt(0), op.operandAt(1), op.operandAt(3),
                      op.operandAt(4), op.operandAt(5), op.operandAt(6)};
  Norm norm = normOf(op.shape(at.x), op.intsAt(2).size());
  OpRule rule;
  rule.operands.assign(op.operandCount(), norm.normalized);
  rule.operands[at.gradient] = rule.operands[at.x] = norm.all;
  rule.operands[at.mean] = rule.operands[at.rstd] = norm.statistics;
  rule.results = {norm.all, norm.normalized, norm.normalized};
  for (size_t k = 0; k < rule.results.size(); ++k)
    if (op.op.results[k] == None)
      rule.results[k].clear();
  for (int64_t row : norm.rows)
    makePartial(rule, norm.all[row].name);
  if (at.bias >= 0 && at.weight >= 0)
    rule.shapeOnly = {at.bias};
  addLinear(rule, {at.gradient});
  rule.lower = [norm, at](Lowering &lowering) {
    lowerBackward(lowering, norm, at);
  };
  return rule;
}

} // namespace

void addNormalizationRules(RuleTable &table) {
  table["aten::native_layer_norm"] = layerNorm;
  table["aten::native_layer_norm_backward"] = layerNormBackward;
}

} // namespace monarch
