//===- Optimizer.h - what an optimizer keeps and moves --------------------===//
//
// Targets are described with AdamW: two moments of 32 bits a parameter, read
// and written in each step. Other optimizers change these bytes and nothing
// else of a target. Frozen weights, as under low-rank adapters, have neither
// gradients nor states, and their gradients' products are not run.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "planner/step/Target.h"

#include <optional>
#include <string_view>

namespace monarch::planner {

enum class Optimizer : uint8_t {
  AdamW,
  /// One moment of 32 bits.
  SgdMomentum,
  Sgd,
  /// Two moments of 8 bits and their block-wise scales (Dettmers et al. 2022,
  /// 8-bit Optimizers via Block-wise Quantization: blocks of 2,048).
  Adam8bit
};

/// "adamw", "sgd", "sgd_momentum", "adamw_8bit".
std::optional<Optimizer> parseOptimizer(std::string_view text);

/// Bytes a parameter of the optimizer's moments.
double momentBytes(Optimizer optimizer);
Target withOptimizer(const Target &target, Optimizer optimizer);

/// Low-rank adapters on frozen weights (Hu et al. 2021). The adapters' own
/// products and states are left out: of rank 16 on 4,096 columns they are below
/// a hundredth.
struct FrozenRun {
  ModelWork work;
  Target target;
};
FrozenRun withFrozenWeights(const ModelWork &work, const Target &target);

} // namespace monarch::planner
