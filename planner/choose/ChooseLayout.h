//===- ChooseLayout.h - the fastest layout that fits ----------------------===//
//
// Searches all layouts that a target can express on a machine: degrees of data,
// tensor, sequence, context, expert and pipeline parallelism, chunks, schedule,
// micro-batch, recompute, sharding and its groups, cuts between stages. A
// closed-form bound, never above the price, orders the candidates; survivors
// are priced by the step model, with the best cut of the layers that fits and
// their pipelines simulated.
// Deterministic: ties go to the first in the order of the space.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "planner/step/Estimate.h"

#include <functional>

namespace monarch::planner {

/// What a user has decided. Names, as users write them: dp tp pp cp ep vpp (or
/// chunks) micro_batch zero (0..3) dp_shard recompute (none, selective, per_op,
/// full) schedule (1f1b, gpipe, zb1, zb2, zbv, vhalf) sp, offload (on, off)
/// layers (13:13:6).
struct LayoutPins {
  std::optional<int64_t> dp, tp, pp, cp, ep, chunks, microBatch;
  std::optional<Sharding> sharding;
  /// Ranks that share one copy of the sharded state; 0: all.
  std::optional<int64_t> shardGroup;
  std::optional<Recompute> recompute;
  std::optional<Schedule> schedule;
  std::optional<bool> isSequenceParallel, offloadsOptimizer;
  /// Layers of each stage.
  std::vector<int64_t> stageLayers;

  /// Names and values of what is pinned, in the order above.
  std::vector<std::pair<std::string, std::string>> entries() const;
};
/// "tp=4,pp=2,zero=1". MP3304 (exit 2): unknown names, with the known ones.
Expected<LayoutPins> readLayoutPins(std::string_view text);

struct SearchProgress {
  int64_t bounded = 0, priced = 0;
  /// 0: none yet.
  double bestSeconds = 0, boundSeconds = 0;
};

struct LayoutRequest {
  int64_t globalBatch = 1;
  LayoutPins pins;
  /// Share of the memory that stays free.
  double headroom = MemoryHeadroom;
  Precision precision = Precision::Half;
  /// How many other families to name.
  size_t alternatives = 3;
  /// Called now and then; false ends the search with the best so far.
  std::function<bool(const SearchProgress &)> onProgress;
};

enum class DecidedBy : uint8_t { User, Planner, Default };

/// One field of the chosen layout. Default: the target has no other value.
struct LayoutDecision {
  std::string name, value;
  DecidedBy by = DecidedBy::Planner;
};

/// Layouts that share tp, pp, dp, cp, ep and sharding, by their best one.
struct LayoutFamily {
  Estimate best;
  /// Why it is not the choice: which parts of the step are longer and by how
  /// much, or by how much memory is exceeded.
  std::string reason;
};

struct LayoutChoice {
  Estimate best;
  /// No layout of the space that fits is faster than this.
  double boundSeconds = 0;
  double gap() const { return 1 - boundSeconds / best.time.seconds; }
  /// Candidates in the space; those whose own bound was computed (the rest went
  /// with the bound of their degrees); those priced; pipelines simulated event
  /// by event; those that do not fit.
  int64_t candidates = 0, bounded = 0, priced = 0, simulated = 0,
          overMemory = 0;
  std::vector<LayoutFamily> alternatives;
  /// The fastest that only memory rules out, if faster than the choice.
  std::optional<LayoutFamily> fasterButTooLarge;
  std::vector<LayoutDecision> decisions;
  /// Devices that the choice leaves idle; said in a remark of `best` as well.
  int64_t idleDevices = 0;
  /// False: ended early by `onProgress`.
  bool isComplete = true;
};

/// MP3310 (exit 4): nothing fits: what is needed, what there is, the smallest
/// cluster of such nodes that does, the most effective lever. MP3311 (exit 4):
/// pins that no layout honours together: the smallest such set, and what each
/// of them could be if the others stay.
Expected<LayoutChoice> chooseLayout(const ModelWork &work,
                                    const Machine &machine,
                                    const Target &target,
                                    const LayoutRequest &request);

/// A screen of text: the estimate, the gap, the alternatives; and as JSON.
std::string summarize(const LayoutChoice &choice, const Machine &machine,
                      const Target &target);
Json toJson(const LayoutChoice &choice, const Machine &machine,
            const Target &target);

} // namespace monarch::planner
