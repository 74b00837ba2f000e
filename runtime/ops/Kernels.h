//===- Kernels.h - what Ops.cpp registers ---------------------------------===//
//
// One function for each op and backend; Ops.h says what they compute.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <optional>
#include <tuple>

namespace monarch {

using Tensor2 = std::tuple<at::Tensor, at::Tensor>;
using Tensor4 = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;
using OptionalTensor = std::optional<at::Tensor>;

Tensor2 attentionCpu(const at::Tensor &q, const at::Tensor &k,
                     const at::Tensor &v, const OptionalTensor &mask,
                     bool isCausal, double scale);
Tensor2 attentionMeta(const at::Tensor &q, const at::Tensor &k,
                      const at::Tensor &v, const OptionalTensor &mask,
                      bool isCausal, double scale);
Tensor4 attentionBackwardCpu(const at::Tensor &gradOut, const at::Tensor &q,
                             const at::Tensor &k, const at::Tensor &v,
                             const OptionalTensor &mask, const at::Tensor &out,
                             const at::Tensor &logsumexp, bool isCausal,
                             double scale, std::array<bool, 4> need);
Tensor4 attentionBackwardMeta(const at::Tensor &gradOut, const at::Tensor &q,
                              const at::Tensor &k, const at::Tensor &v,
                              const OptionalTensor &mask, const at::Tensor &out,
                              const at::Tensor &logsumexp, bool isCausal,
                              double scale, std::array<bool, 4> need);

Tensor2 dropoutCpu(const at::Tensor &x, const at::Tensor &rng, int64_t stream,
                   double p, at::TensorList rows, at::IntArrayRef sizes);
Tensor2 dropoutMeta(const at::Tensor &x, const at::Tensor &rng, int64_t stream,
                    double p, at::TensorList rows, at::IntArrayRef sizes);
at::Tensor dropoutBackwardCpu(const at::Tensor &grad, const at::Tensor &mask,
                              double p);
at::Tensor dropoutBackwardMeta(const at::Tensor &grad, const at::Tensor &mask,
                               double p);

} // namespace monarch
