//===- Optimizer.h - the update of one parameter --------------------------===//
//
// SGD and AdamW with torch.optim's defaults and formulas, by LibTorch's fused
// kernels: in place on local blocks, without scratch.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/program/Program.h"

#include <ATen/core/Tensor.h>

namespace monarch::runtime {

/// Numbers of a run; they are no part of the plan.
struct OptimizerSettings {
  double learningRate = 1e-3;
  double weightDecay = 0;
  /// Largest 2-norm of all gradients together; 0: no clipping.
  double clipNorm = 0;
};

class Optimizer {
public:
  Optimizer(OptimizerKind kind, OptimizerSettings settings);

  /// Makes the states of a parameter, zero; call once for each.
  void add(int32_t value, const at::Tensor &parameter);
  /// `step` counts from 1. `gradientScale` multiplies the gradient, in place,
  /// first.
  void update(int32_t value, const at::Tensor &parameter,
              const at::Tensor &gradient, int64_t step, double gradientScale);
  /// What clip_grad_norm_ of torch multiplies gradients with.
  double clipScale(double squaredNorm) const;
  bool clips() const { return settings.clipNorm > 0; }

private:
  struct State {
    at::Tensor mean;
    at::Tensor square;
  };
  OptimizerKind kind;
  OptimizerSettings settings;
  std::map<int32_t, State> states;
};

} // namespace monarch::runtime
