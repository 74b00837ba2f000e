//===- Estimate.h - one layout, priced and explained ----------------------===//
//
// What a person wants to know of a layout: whether the target can run it, how
// long a step takes and how sure that is, where the time goes, what the fullest
// rank holds and whether it fits, throughput and MFU, and what binds.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/support/Json.h"
#include "planner/step/Band.h"
#include "planner/step/StepMemory.h"

namespace monarch::planner {

/// Default headroom of a card: what fragmentation and libraries may take.
inline constexpr double MemoryHeadroom = 0.05;

struct Estimate {
  StepLayout layout;
  std::vector<int64_t> stageLayers;
  StepTime time;
  StepMemory memory;
  /// Share of the prediction, either way, that holds nine of ten measurements.
  double halfWidth = 0;
  double tokensPerSecond = 0;
  /// Model FLOPs (causal attention, no recompute) over the devices' peak.
  double modelFlopsShare = 0;
  double usableBytes = 0;
  bool fits = false;
  /// The largest part of the step.
  std::string binds;
  std::vector<std::string> remarks;
};

/// MP3302 (exit 4): all that the target cannot express or that does not divide,
/// with legal values.
Expected<Estimate> estimate(const ModelWork &work, const Machine &machine,
                            const Target &target, const StepLayout &layout,
                            double headroom = MemoryHeadroom);

/// All reasons against a layout, each with what would be legal; empty: none.
std::vector<std::string> layoutViolations(const ModelWork &work,
                                          const Machine &machine,
                                          const Target &target,
                                          const StepLayout &layout);
/// What a layout may fill of a device's memory.
double usableBytes(const Machine &machine, const Target &target,
                   double headroom);
/// Experts of a layer; 0: none.
int64_t expertCount(const ModelWork &work);

/// A screen of text, and the same as JSON (numbers of predictions in six
/// digits).
std::string summarize(const Estimate &estimate, const Machine &machine,
                      const Target &target);
Json toJson(const Estimate &estimate, const Machine &machine,
            const Target &target);

/// The schedule's pieces, as long as the estimate says, then what is after it.
/// MP3303 where they cannot be simulated.
Expected<PipelineRun> scheduleOf(const Estimate &estimate,
                                 const ModelWork &work, const Machine &machine,
                                 const Target &target);

/// Of one row, forward and backward.
double modelFlops(const ModelWork &work);

} // namespace monarch::planner
