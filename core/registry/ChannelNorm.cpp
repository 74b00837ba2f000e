//===- ChannelNorm.cpp - rules and bodies of batch and group norm ---------===//
//
// Channels of a batch norm are independent, as are rows and groups of a group
// norm. Split dims that are normalised over take two all-reduces forward (the
// mean, then the centred squares) and one or two backward, divided by the
// global count; all ranks then hold the statistics of the whole.
//
//===----------------------------------------------------------------------===//
#include "core/registry/Body.h"
#include "core/registry/Registry.h"

namespace monarch {

namespace {

struct ChannelNorm {
  size_t rank = 0;
  /// Dims that statistics are over, and their labels.
  std::vector<int64_t> dims;
  std::vector<std::string> reduced;
  int64_t count = 1;
  Labels all, statistics;
};

/// Statistics over the dims that `keeps` does not name.
ChannelNorm normOf(const Shape &shape, const std::vector<size_t> &keeps) {
  ChannelNorm norm;
  norm.rank = shape.size();
  norm.all = numbered(norm.rank);
  for (size_t dim = 0; dim < norm.rank; ++dim) {
    if (std::find(keeps.begin(), keeps.end(), dim) != keeps.end()) {
      norm.statistics.push_back(norm.all[dim]);
      continue;
    }
    norm.dims.push_back(static_cast<int64_t>(dim));
    norm.reduced.push_back(norm.all[dim].name);
    norm.count *= shape[dim];
  }
  return norm;
}

/// The statistics' shape spread over x: 1 along dims that it lacks.
Local spread(Body &body, Local values, const std::vector<size_t> &dims,
             size_t rank) {
  std::vector<Expr> shape(rank, Expr::constant(1));
  for (size_t k = 0; k < dims.size(); ++k)
    shape[dims[k]] = body.shape(values)[k];
  return body.view(values, shape);
}

/// Sums over the dims of all ranks that share them; dims stay, of size 1.
Local total(Body &body, Local values, const ChannelNorm &norm,
            const std::vector<int> &axes) {
  return body.allReduceSum(body.sum(values, norm.dims, /*keepDims=*/true),
                           axes);
}

struct Normalized {
  Local value, mean, rstd, variance;
};

Normalized normalize(Body &body, Local x, const ChannelNorm &norm,
                     const std::vector<int> &axes, double epsilon) {
  Normalized result;
  result.mean = body.divide(total(body, x, norm, axes), norm.count);
  Local centred = body.sub(x, result.mean);
  result.variance = body.divide(
      total(body, body.mul(centred, centred), norm, axes), norm.count);
  result.rstd = body.rsqrt(body.add(result.variance, epsilon));
  result.value = body.mul(centred, result.rstd);
  return result;
}

/// A result, or nothing where the op has none.
void setResult(Lowering &lowering, Body &body, int result, Local value) {
  if (lowering.op.results[result] != None)
    lowering.results[result] = body.cast(value, lowering.resultType(result));
}

void clearAbsent(OpRule &rule, const OpView &op) {
  for (size_t k = 0; k < rule.results.size(); ++k)
    if (op.op.results[k] == None)
      rule.results[k].clear();
}

//===- Batch norm ---------------------------------------------------------===//

/// Operands of batch_norm and batch_norm_backward, -1: absent.
struct BatchNormOperands {
  int x, weight, bias, runningMean, runningVar;
};

const std::vector<size_t> ChannelDim = {1};

void lowerBatchNorm(Lowering &lowering, const ChannelNorm &norm,
                    const BatchNormOperands &at, double momentum,
                    double epsilon) {
  const std::vector<int> axes = lowering.axesOf(norm.reduced);
  if (axes.empty())
    return lowering.callItself();
  Body body(lowering);
  const DType type = lowering.resultType(1);
  const std::vector<Local> &operands = lowering.operands;
  auto affine = [&](int operand) {
    return spread(body, body.cast(operands[operand], type), ChannelDim,
                  norm.rank);
  };
  Normalized x =
      normalize(body, body.cast(operands[at.x], type), norm, axes, epsilon);
  Local y = x.value;
  if (at.weight >= 0)
    y = body.mul(y, affine(at.weight));
  if (at.bias >= 0)
    y = body.add(y, affine(at.bias));
  const std::vector<Expr> channels = lowering.resultShape(1);
  auto flat = [&](Local values) {
    return body.copy(body.view(values, channels));
  };
  lowering.results.assign(5, Local());
  setResult(lowering, body, 0, y);
  lowering.results[1] = flat(x.mean);
  lowering.results[2] = flat(x.rstd);
  auto update = [&](int result, int running, Local batch) {
    if (running < 0)
      return;
    Local old = body.cast(operands[running], type);
    setResult(lowering, body, result,
              body.add(body.mul(old, 1 - momentum),
                       body.mul(body.view(batch, channels), momentum)));
  };
  update(3, at.runningMean, x.mean);
  // Running variances are unbiased.
  const double unbiased =
      static_cast<double>(norm.count) /
      static_cast<double>(std::max<int64_t>(norm.count - 1, 1));
  update(4, at.runningVar, body.mul(x.variance, unbiased));
}

/// batch_norm(x, weight?, bias?, running_mean?, running_var?, momentum, eps)
///   -> (y, mean, rstd, new_mean, new_var).
std::optional<OpRule> batchNorm(const OpView &op) {
  const BatchNormOperands at{op.operandAt(0), op.operandAt(1), op.operandAt(2),
                             op.operandAt(3), op.operandAt(4)};
  const ChannelNorm norm = normOf(op.shape(at.x), ChannelDim);
  OpRule rule;
  rule.operands.assign(op.operandCount(), norm.statistics);
  rule.operands[at.x] = norm.all;
  rule.results.assign(5, norm.statistics);
  rule.results[0] = norm.all;
  clearAbsent(rule, op);
  rule.lower = [norm, at, momentum = op.numberAt(5).value_or(0.1),
                epsilon = op.numberAt(6).value_or(1e-5)](Lowering &lowering) {
    lowerBatchNorm(lowering, norm, at, momentum, epsilon);
  };
  return rule;
}

struct GradientOperands {
  int gradient, x, weight, mean, rstd;
};

void lowerBatchNormBackward(Lowering &lowering, const ChannelNorm &norm,
                            const GradientOperands &at) {
  const std::vector<int> axes = lowering.axesOf(norm.reduced);
  if (axes.empty())
    return lowering.callItself();
  Body body(lowering);
  const std::vector<Local> &operands = lowering.operands;
  const DType type = body.type(operands[at.mean]);
  auto wide = [&](int operand) {
    return spread(body, body.cast(operands[operand], type), ChannelDim,
                  norm.rank);
  };
  Local g = body.cast(operands[at.gradient], type);
  Local rstd = wide(at.rstd);
  Local normalized =
      body.mul(body.sub(body.cast(operands[at.x], type), wide(at.mean)), rstd);
  Local bias = total(body, g, norm, axes);
  Local weight = total(body, body.mul(g, normalized), norm, axes);
  lowering.results.assign(3, Local());
  if (lowering.op.results[0] != None) {
    Local dx = body.sub(body.sub(g, body.divide(bias, norm.count)),
                        body.mul(normalized, body.divide(weight, norm.count)));
    dx = body.mul(dx, rstd);
    if (at.weight >= 0)
      dx = body.mul(dx, wide(at.weight));
    setResult(lowering, body, 0, dx);
  }
  for (auto [result, sum] : {std::pair(1, weight), std::pair(2, bias)})
    if (lowering.op.results[result] != None)
      setResult(lowering, body, result,
                body.copy(body.view(sum, lowering.resultShape(result))));
}

/// batch_norm_backward(gradient, x, weight?, mean, rstd, eps, need)
///   -> (dx, dweight, dbias).
std::optional<OpRule> batchNormBackward(const OpView &op) {
  const GradientOperands at{op.operandAt(0), op.operandAt(1), op.operandAt(2),
                            op.operandAt(3), op.operandAt(4)};
  const ChannelNorm norm = normOf(op.shape(at.x), ChannelDim);
  OpRule rule;
  rule.operands.assign(op.operandCount(), norm.statistics);
  rule.operands[at.gradient] = rule.operands[at.x] = norm.all;
  rule.results = {norm.all, norm.statistics, norm.statistics};
  clearAbsent(rule, op);
  addLinear(rule, {at.gradient});
  rule.lower = [norm, at](Lowering &lowering) {
    lowerBatchNormBackward(lowering, norm, at);
  };
  return rule;
}

//===- Group norm ---------------------------------------------------------===//

/// x [N, G, K, ...]: statistics for each row and group, weights [G, K].
const std::vector<size_t> GroupDims = {0, 1};
const std::vector<size_t> AffineDims = {1, 2};

Labels affineLabels(const ChannelNorm &norm) {
  return {norm.all[1], norm.all[2]};
}

void lowerGroupNorm(Lowering &lowering, const ChannelNorm &norm, int weight,
                    int bias, double epsilon) {
  const std::vector<int> axes = lowering.axesOf(norm.reduced);
  if (axes.empty())
    return lowering.callItself();
  Body body(lowering);
  const DType type = lowering.resultType(1);
  auto affine = [&](int operand) {
    return spread(body, body.cast(lowering.operands[operand], type), AffineDims,
                  norm.rank);
  };
  Normalized x = normalize(body, body.cast(lowering.operands[0], type), norm,
                           axes, epsilon);
  Local y = x.value;
  if (weight >= 0)
    y = body.mul(y, affine(weight));
  if (bias >= 0)
    y = body.add(y, affine(bias));
  auto flat = [&](Local values) {
    return body.copy(body.view(values, lowering.resultShape(1)));
  };
  lowering.results.assign(3, Local());
  setResult(lowering, body, 0, y);
  lowering.results[1] = flat(x.mean);
  lowering.results[2] = flat(x.rstd);
}

/// group_norm(x, weight?, bias?, eps) -> (y, mean, rstd).
std::optional<OpRule> groupNorm(const OpView &op) {
  const ChannelNorm norm = normOf(op.shape(0), GroupDims);
  const int weight = op.operandAt(1), bias = op.operandAt(2);
  OpRule rule;
  rule.operands.assign(op.operandCount(), affineLabels(norm));
  rule.operands[0] = norm.all;
  rule.results = {norm.all, norm.statistics, norm.statistics};
  rule.lower = [norm, weight, bias,
                epsilon = op.numberAt(3).value_or(1e-5)](Lowering &lowering) {
    lowerGroupNorm(lowering, norm, weight, bias, epsilon);
  };
  return rule;
}

void lowerGroupNormBackward(Lowering &lowering, const ChannelNorm &norm,
                            int affine) {
  const std::vector<int> axes = lowering.axesOf(norm.reduced);
  if (axes.empty())
    return lowering.callItself();
  Body body(lowering);
  const std::vector<Local> &operands = lowering.operands;
  const DType type = body.type(operands[2]);
  auto wide = [&](int operand, const std::vector<size_t> &dims) {
    return spread(body, body.cast(operands[operand], type), dims, norm.rank);
  };
  Local g = body.cast(operands[0], type);
  Local rstd = wide(3, GroupDims);
  Local normalized = body.mul(
      body.sub(body.cast(operands[1], type), wide(2, GroupDims)), rstd);
  lowering.results.assign(3, Local());
  if (lowering.op.results[0] != None) {
    Local weighted = affine >= 0 ? body.mul(g, wide(affine, AffineDims)) : g;
    Local mean = body.divide(total(body, weighted, norm, axes), norm.count);
    Local along = body.divide(
        total(body, body.mul(weighted, normalized), norm, axes), norm.count);
    Local dx = body.sub(body.sub(weighted, mean), body.mul(normalized, along));
    setResult(lowering, body, 0, body.mul(dx, rstd));
  }
  // Rows, and dims after the channels: split ones leave partial sums.
  std::vector<int64_t> dims = {0};
  for (size_t dim = 3; dim < norm.rank; ++dim)
    dims.push_back(static_cast<int64_t>(dim));
  if (lowering.op.results[1] != None)
    setResult(lowering, body, 1,
              body.sum(body.mul(g, normalized), dims, /*keepDims=*/false));
  if (lowering.op.results[2] != None)
    setResult(lowering, body, 2, body.sum(g, dims, /*keepDims=*/false));
}

/// group_norm_backward(gradient, x, mean, rstd, weight?, need)
///   -> (dx, dweight, dbias).
std::optional<OpRule> groupNormBackward(const OpView &op) {
  const ChannelNorm norm = normOf(op.shape(1), GroupDims);
  const int weight = op.operandAt(4);
  OpRule rule;
  rule.operands.assign(op.operandCount(), affineLabels(norm));
  rule.operands[0] = rule.operands[1] = norm.all;
  rule.operands[2] = rule.operands[3] = norm.statistics;
  rule.results = {norm.all, affineLabels(norm), affineLabels(norm)};
  clearAbsent(rule, op);
  for (size_t dim = 0; dim < norm.rank; ++dim)
    if (dim != 1 && dim != 2)
      makePartial(rule, norm.all[dim].name);
  addLinear(rule, {0});
  rule.lower = [norm, weight](Lowering &lowering) {
    lowerGroupNormBackward(lowering, norm, weight);
  };
  return rule;
}

} // namespace

void addChannelNormRules(RuleTable &table) {
  table["monarch::batch_norm"] = batchNorm;
  table["monarch::batch_norm_backward"] = batchNormBackward;
  table["monarch::group_norm"] = groupNorm;
  table["monarch::group_norm_backward"] = groupNormBackward;
}

} // namespace monarch
