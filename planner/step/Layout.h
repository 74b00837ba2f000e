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
  /// Weight gradients fill the bubble: within the memory of 1F1B (ZB-H1), and
  /// with twice of it (Qi et al. 2023, arXiv 2401.10241).
  ZeroBubble1,
  ZeroBubble2,
  /// All forwards, then all backwards.
  GPipe,
  /// Two chunks a stage, one on the way down the stages and one on the way
  /// back: V-ZB and V-Half (Qi et al. 2024, arXiv 2405.15362).
  ZeroBubbleV,
  VHalf
};
inline constexpr Schedule Schedules[] = {
    Schedule::OneForwardOneBackward, Schedule::ZeroBubble1,
    Schedule::ZeroBubble2,           Schedule::GPipe,
    Schedule::ZeroBubbleV,           Schedule::VHalf};

/// The first stage holds the last layers as well.
inline bool isFolded(Schedule schedule) {
  return schedule == Schedule::ZeroBubbleV || schedule == Schedule::VHalf;
}
/// Gradients of weights are steps of their own.
inline bool splitsBackward(Schedule schedule) {
  return schedule != Schedule::OneForwardOneBackward &&
         schedule != Schedule::GPipe;
}
bool offers(const Target &target, Schedule schedule);

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
  /// The optimizer's states lie in the host's memory, and the host updates.
  bool offloadsOptimizer = false;
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
  /// The one with the head.
  int64_t lastStage() const { return isFolded(schedule) ? 0 : pp - 1; }
  int64_t devices() const { return tp * pp * dp * cp; }
  double microBatches() const;
};

} // namespace monarch::planner
