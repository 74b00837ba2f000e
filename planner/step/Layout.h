//===- Layout.h - how a step is laid out over devices ---------------------===//
//
// Degrees, schedule, sharding and recompute: what a target's flags say. The
// ranks of a node are those of tp first, then cp, dp, pp.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "planner/step/Kernels.h"

namespace monarch::planner {

enum class Recompute : uint8_t {
  None,
  /// The scores of attention.
  CoreAttention,
  /// Attention and every second product are kept, the rest made again.
  PerOp,
  /// Only the inputs of layers are kept.
  Full
};

enum class Schedule : uint8_t {
  OneForwardOneBackward,
  ZeroBubble1,
  ZeroBubble2
};

struct StepLayout {
  int64_t tp = 1, pp = 1, dp = 1, cp = 1, ep = 1;
  /// Chunks of layers a stage holds, in turn.
  int64_t chunks = 1;
  int64_t microBatch = 1;
  int64_t globalBatch = 1;
  bool isSequenceParallel = false;
  Sharding sharding = Sharding::None;
  /// Ranks that share one copy; 0: all of dp x cp.
  int64_t shardGroup = 0;
  Recompute recompute = Recompute::None;
  bool recomputesMlp = false;
  Schedule schedule = Schedule::OneForwardOneBackward;
  Precision precision = Precision::Half;
  std::optional<AttentionKernel> attention;
  /// Layers of each stage; empty: as even as can be, the first ones longer.
  std::vector<int64_t> stageLayers;
  /// Recompute of each stage where they differ; empty: `recompute` on all.
  std::vector<Recompute> stageRecompute;

  Recompute recomputeOf(size_t stage) const {
    return stageRecompute.empty() ? recompute : stageRecompute[stage];
  }
  int64_t devices() const { return tp * pp * dp * cp; }
  double microBatches() const;
};

} // namespace monarch::planner
