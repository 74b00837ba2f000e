//===- Normalization.cpp - batch norm and group norm on CPU, their shapes -===//
//
// PyTorch's own kernels, with outputs that do not differ by device: statistics
// in the type that sums are taken in, new running statistics as results.
//
//===----------------------------------------------------------------------===//
#include "runtime/ops/Kernels.h"

#include <ATen/ATen.h>

namespace monarch {

namespace {

bool isGiven(const OptionalTensor &tensor) {
  return tensor && tensor->defined();
}

at::Tensor emptyLikeGiven(const OptionalTensor &tensor) {
  return isGiven(tensor) ? at::empty_like(*tensor) : at::Tensor();
}

at::TensorOptions statisticsOptions(const at::Tensor &x) {
  return x.options().dtype(x.scalar_type() == at::kDouble ? at::kDouble
                                                          : at::kFloat);
}

void checkChannels(const at::Tensor &x) {
  TORCH_CHECK(x.dim() >= 2, "batch norm: x must have a dim of channels");
}

/// [N, G, K, ...] as the kernels of group norm take it.
struct Groups {
  explicit Groups(const at::Tensor &x) {
    TORCH_CHECK(x.dim() >= 3, "group norm: x must be [N, groups, channels a "
                              "group, ...]");
    rows = x.size(0), groups = x.size(1), channels = groups * x.size(2);
    for (int64_t dim = 3; dim < x.dim(); ++dim)
      positions *= x.size(dim);
  }
  at::Tensor flat(const at::Tensor &x) const {
    return x.contiguous().view({rows, channels, positions});
  }
  OptionalTensor flat(const OptionalTensor &affine) const {
    return isGiven(affine) ? OptionalTensor(affine->contiguous().view(channels))
                           : std::nullopt;
  }

  int64_t rows, groups, channels, positions = 1;
};

} // namespace

Tensor5 batchNormCpu(const at::Tensor &x, const OptionalTensor &weight,
                     const OptionalTensor &bias,
                     const OptionalTensor &runningMean,
                     const OptionalTensor &runningVar, double momentum,
                     double epsilon) {
  checkChannels(x);
  at::Tensor newMean =
      isGiven(runningMean) ? runningMean->clone() : at::Tensor();
  at::Tensor newVar = isGiven(runningVar) ? runningVar->clone() : at::Tensor();
  if (x.numel() == 0)
    return {at::empty_like(x), at::zeros({x.size(1)}, statisticsOptions(x)),
            at::zeros({x.size(1)}, statisticsOptions(x)), newMean, newVar};
  auto [y, mean, rstd] =
      at::native_batch_norm(x.contiguous(), weight, bias, newMean, newVar,
                            /*training=*/true, momentum, epsilon);
  const at::ScalarType type =
      c10::typeMetaToScalarType(statisticsOptions(x).dtype());
  return {y, mean.to(type), rstd.to(type), newMean, newVar};
}

Tensor3 batchNormBackwardCpu(const at::Tensor &gradient, const at::Tensor &x,
                             const OptionalTensor &weight,
                             const at::Tensor &mean, const at::Tensor &rstd,
                             double epsilon, std::array<bool, 3> need) {
  checkChannels(x);
  auto affine = [&](bool needed) {
    return needed ? at::zeros({x.size(1)},
                              isGiven(weight) ? weight->options() : x.options())
                  : at::Tensor();
  };
  if (x.numel() == 0)
    return {need[0] ? at::empty_like(x) : at::Tensor(), affine(need[1]),
            affine(need[2])};
  return at::native_batch_norm_backward(gradient.contiguous(), x.contiguous(),
                                        weight, {}, {}, mean, rstd,
                                        /*train=*/true, epsilon, need);
}

Tensor5 batchNormMeta(const at::Tensor &x, const OptionalTensor &,
                      const OptionalTensor &, const OptionalTensor &runningMean,
                      const OptionalTensor &runningVar, double, double) {
  checkChannels(x);
  return {at::empty(x.sizes(), x.options()),
          at::empty({x.size(1)}, statisticsOptions(x)),
          at::empty({x.size(1)}, statisticsOptions(x)),
          emptyLikeGiven(runningMean), emptyLikeGiven(runningVar)};
}

Tensor3 batchNormBackwardMeta(const at::Tensor &, const at::Tensor &x,
                              const OptionalTensor &weight, const at::Tensor &,
                              const at::Tensor &, double,
                              std::array<bool, 3> need) {
  checkChannels(x);
  auto affine = [&](bool needed) {
    return needed ? at::empty({x.size(1)},
                              isGiven(weight) ? weight->options() : x.options())
                  : at::Tensor();
  };
  return {need[0] ? at::empty(x.sizes(), x.options()) : at::Tensor(),
          affine(need[1]), affine(need[2])};
}

Tensor3 groupNormCpu(const at::Tensor &x, const OptionalTensor &weight,
                     const OptionalTensor &bias, double epsilon) {
  const Groups of(x);
  if (x.numel() == 0)
    return {at::empty_like(x),
            at::zeros({of.rows, of.groups}, statisticsOptions(x)),
            at::zeros({of.rows, of.groups}, statisticsOptions(x))};
  auto [y, mean, rstd] =
      at::native_group_norm(of.flat(x), of.flat(weight), of.flat(bias), of.rows,
                            of.channels, of.positions, of.groups, epsilon);
  const at::ScalarType type =
      c10::typeMetaToScalarType(statisticsOptions(x).dtype());
  return {y.view(x.sizes()), mean.to(type), rstd.to(type)};
}

Tensor3 groupNormBackwardCpu(const at::Tensor &gradient, const at::Tensor &x,
                             const at::Tensor &mean, const at::Tensor &rstd,
                             const OptionalTensor &weight,
                             std::array<bool, 3> need) {
  const Groups of(x);
  const at::TensorOptions options =
      isGiven(weight) ? weight->options() : x.options();
  auto affine = [&](bool needed) {
    return needed ? at::zeros({of.groups, x.size(2)}, options) : at::Tensor();
  };
  if (x.numel() == 0)
    return {need[0] ? at::empty_like(x) : at::Tensor(), affine(need[1]),
            affine(need[2])};
  // The statistics come in the type in which the forward gave them.
  const at::ScalarType type =
      isGiven(weight) ? weight->scalar_type() : x.scalar_type();
  auto [dx, dweight, dbias] = at::native_group_norm_backward(
      of.flat(gradient), of.flat(x), mean.to(type), rstd.to(type),
      of.flat(weight), of.rows, of.channels, of.positions, of.groups, need);
  auto shaped = [&](const at::Tensor &result, at::IntArrayRef shape) {
    return result.defined() ? result.view(shape) : result;
  };
  return {shaped(dx, x.sizes()), shaped(dweight, {of.groups, x.size(2)}),
          shaped(dbias, {of.groups, x.size(2)})};
}

Tensor3 groupNormMeta(const at::Tensor &x, const OptionalTensor &,
                      const OptionalTensor &, double) {
  const Groups of(x);
  return {at::empty(x.sizes(), x.options()),
          at::empty({of.rows, of.groups}, statisticsOptions(x)),
          at::empty({of.rows, of.groups}, statisticsOptions(x))};
}

Tensor3 groupNormBackwardMeta(const at::Tensor &, const at::Tensor &x,
                              const at::Tensor &, const at::Tensor &,
                              const OptionalTensor &weight,
                              std::array<bool, 3> need) {
  const Groups of(x);
  const at::TensorOptions options =
      isGiven(weight) ? weight->options() : x.options();
  auto affine = [&](bool needed) {
    return needed ? at::empty({of.groups, x.size(2)}, options) : at::Tensor();
  };
  return {need[0] ? at::empty(x.sizes(), x.options()) : at::Tensor(),
          affine(need[1]), affine(need[2])};
}

} // namespace monarch
