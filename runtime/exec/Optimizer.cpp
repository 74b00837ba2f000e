//===- Optimizer.cpp - the update of one parameter ------------------------===//
//
// See Optimizer.h.
//
//===----------------------------------------------------------------------===//
#include "runtime/exec/Optimizer.h"

#include "runtime/support/MemoryTally.h"

#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>

namespace monarch::runtime {

// Defaults of torch.optim.AdamW.
static constexpr double beta1 = 0.9;
static constexpr double beta2 = 0.999;
static constexpr double epsilon = 1e-8;
// torch.nn.utils.clip_grad_norm_ divides by norm + 1e-6.
static constexpr double clipEpsilon = 1e-6;

Optimizer::Optimizer(OptimizerKind kind, OptimizerSettings settings)
    : kind(kind), settings(settings) {}

void Optimizer::add(int32_t value, const at::Tensor &parameter) {
  if (kind == OptimizerKind::AdamW)
    states[value] = {at::zeros_like(parameter), at::zeros_like(parameter)};
}

void Optimizer::update(int32_t value, const at::Tensor &parameter,
                       const at::Tensor &gradient, int64_t step,
                       double gradientScale) {
  if (gradientScale != 1)
    gradient.mul_(gradientScale);
  // A rank's block may be empty; the fused kernels want elements.
  if (parameter.numel() == 0)
    return;
  if (kind == OptimizerKind::SGD) {
    at::_fused_sgd_({parameter}, {gradient}, {}, settings.weightDecay,
                    /*momentum=*/0, settings.learningRate, /*dampening=*/0,
                    /*nesterov=*/false, /*maximize=*/false,
                    /*is_first_step=*/false);
    return;
  }
  State &state = states.at(value);
  at::Tensor count;
  {
    MemoryScope uncounted(nullptr);
    count = at::full({}, static_cast<double>(step), at::kFloat);
  }
  at::_fused_adamw_({parameter}, {gradient}, {state.mean}, {state.square}, {},
                    {count}, settings.learningRate, beta1, beta2,
                    settings.weightDecay, epsilon, /*amsgrad=*/false,
                    /*maximize=*/false);
}

double Optimizer::clipScale(double squaredNorm) const {
  return std::min(1.0,
                  settings.clipNorm / (std::sqrt(squaredNorm) + clipEpsilon));
}

} // namespace monarch::runtime
