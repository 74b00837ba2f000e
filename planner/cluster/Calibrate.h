//===- Calibrate.h - a cluster's rates from measured steps ----------------===//
//
// One to three steps that somebody ran and timed move three factors: on
// compute, on the links of a node and on the network. The fit is the most
// likely one where a prediction with the right rates is off by a third of a
// percent, and rates, before anything was measured, by a good deal more; so a
// single step is met by moving what it depends on most, and what no step
// depends on stays. Work of the host has no factor: a step that waits for it is
// met only so far.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "planner/cluster/Cluster.h"
#include "planner/step/Estimate.h"

namespace monarch::planner {

struct MeasuredStep {
  ModelWork work;
  Target target;
  StepLayout layout;
  double seconds = 0;
};

struct CalibrationFit {
  Calibration factors;
  /// Predicted seconds of each step.
  std::vector<double> before, after;
};

/// Whatever calibration the cluster has is left out first.
CalibrationFit calibrate(const Cluster &cluster,
                         const std::vector<MeasuredStep> &steps);

} // namespace monarch::planner
