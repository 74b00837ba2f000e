//===- Price.h - the predicted time of one step ---------------------------===//
//
// Prices a program as it is: each instruction once for each run of its segment,
// at the slowest rank of its stage, and the stages against each other by
// simulating sends and receives through the schedule, warm-up and cool-down
// included. All figures are integers, so equal programs cost the same and plans
// compare exactly.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "planner/cost/InstructionCost.h"

namespace monarch::planner {

/// What one rank of a stage spends in one step.
struct StageTime {
  int64_t forwardPicoseconds = 0;
  int64_t backwardPicoseconds = 0;
  /// Counts and the step: once.
  int64_t stepPicoseconds = 0;
  /// Of the three above: collectives, and starting sends and receives.
  int64_t collectivePicoseconds = 0;
  int64_t sendPicoseconds = 0;
  /// Waiting for other stages.
  int64_t idlePicoseconds = 0;
  bool operator==(const StageTime &) const = default;

  int64_t busyPicoseconds() const {
    return forwardPicoseconds + backwardPicoseconds + stepPicoseconds;
  }
};

/// A step as its busiest stage spends it; adds up to no more than the step.
struct StepParts {
  int64_t computePicoseconds = 0;
  int64_t collectivePicoseconds = 0;
  int64_t sendPicoseconds = 0;
  int64_t idlePicoseconds = 0;
};

struct Price {
  int64_t stepPicoseconds = 0;
  std::vector<StageTime> stages;
  bool operator==(const Price &) const = default;

  const StageTime &busiestStage() const;
  StepParts parts() const;
};

/// An error when the schedule deadlocks.
Expected<Price> price(const Program &program, const Cluster &cluster);

} // namespace monarch::planner
