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
using Tensor3 = std::tuple<at::Tensor, at::Tensor, at::Tensor>;
using Tensor4 = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;
using Tensor5 =
    std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>;
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

Tensor5 batchNormCpu(const at::Tensor &x, const OptionalTensor &weight,
                     const OptionalTensor &bias,
                     const OptionalTensor &runningMean,
                     const OptionalTensor &runningVar, double momentum,
                     double epsilon);
Tensor5 batchNormMeta(const at::Tensor &x, const OptionalTensor &weight,
                      const OptionalTensor &bias,
                      const OptionalTensor &runningMean,
                      const OptionalTensor &runningVar, double momentum,
                      double epsilon);
Tensor3 batchNormBackwardCpu(const at::Tensor &gradient, const at::Tensor &x,
                             const OptionalTensor &weight,
                             const at::Tensor &mean, const at::Tensor &rstd,
                             double epsilon, std::array<bool, 3> need);
Tensor3 batchNormBackwardMeta(const at::Tensor &gradient, const at::Tensor &x,
                              const OptionalTensor &weight,
                              const at::Tensor &mean, const at::Tensor &rstd,
                              double epsilon, std::array<bool, 3> need);

Tensor3 groupNormCpu(const at::Tensor &x, const OptionalTensor &weight,
                     const OptionalTensor &bias, double epsilon);
Tensor3 groupNormMeta(const at::Tensor &x, const OptionalTensor &weight,
                      const OptionalTensor &bias, double epsilon);
Tensor3 groupNormBackwardCpu(const at::Tensor &gradient, const at::Tensor &x,
                             const at::Tensor &mean, const at::Tensor &rstd,
                             const OptionalTensor &weight,
                             std::array<bool, 3> need);
Tensor3 groupNormBackwardMeta(const at::Tensor &gradient, const at::Tensor &x,
                              const at::Tensor &mean, const at::Tensor &rstd,
                              const OptionalTensor &weight,
                              std::array<bool, 3> need);

at::Tensor embeddingBagCpu(const at::Tensor &weight, const at::Tensor &indices,
                           const OptionalTensor &offsets,
                           const OptionalTensor &rowWeights, int64_t mode,
                           bool includesLast, int64_t padding,
                           const OptionalTensor &held);
at::Tensor embeddingBagMeta(const at::Tensor &weight, const at::Tensor &indices,
                            const OptionalTensor &offsets,
                            const OptionalTensor &rowWeights, int64_t mode,
                            bool includesLast, int64_t padding,
                            const OptionalTensor &held);
Tensor2 embeddingBagBackwardCpu(const at::Tensor &gradient,
                                const OptionalTensor &weight,
                                const at::Tensor &indices,
                                const OptionalTensor &offsets,
                                const OptionalTensor &rowWeights, int64_t mode,
                                bool includesLast, int64_t padding,
                                int64_t tableRows, const OptionalTensor &held,
                                std::array<bool, 2> need);
Tensor2 embeddingBagBackwardMeta(const at::Tensor &gradient,
                                 const OptionalTensor &weight,
                                 const at::Tensor &indices,
                                 const OptionalTensor &offsets,
                                 const OptionalTensor &rowWeights, int64_t mode,
                                 bool includesLast, int64_t padding,
                                 int64_t tableRows, const OptionalTensor &held,
                                 std::array<bool, 2> need);

at::Tensor groupedMatmulCpu(const at::Tensor &x, const at::Tensor &weight,
                            const at::Tensor &ends,
                            const OptionalTensor &begins);
at::Tensor groupedMatmulMeta(const at::Tensor &x, const at::Tensor &weight,
                             const at::Tensor &ends,
                             const OptionalTensor &begins);
Tensor2 groupedMatmulBackwardCpu(const at::Tensor &gradient,
                                 const at::Tensor &x, const at::Tensor &weight,
                                 const at::Tensor &ends,
                                 const OptionalTensor &begins,
                                 std::array<bool, 2> need);
Tensor2 groupedMatmulBackwardMeta(const at::Tensor &gradient,
                                  const at::Tensor &x, const at::Tensor &weight,
                                  const at::Tensor &ends,
                                  const OptionalTensor &begins,
                                  std::array<bool, 2> need);

} // namespace monarch
