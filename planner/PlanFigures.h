//===- PlanFigures.h - what a plan of our own comes to --------------------===//
//
// The figures that a person asks of a plan beside its step: how sure that is,
// throughput, the share of the devices' peak, and what binds. Text and file say
// the same ones.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "planner/Planner.h"

namespace monarch::planner {

struct PlanFigures {
  double stepSeconds = 0;
  /// Share of the prediction, either way, that holds nine of ten measurements:
  /// widths of published runs of GPUs (planner/step/Band.h).
  double halfWidth = 0;
  double rowsPerSecond = 0;
  /// 0: the model looks up no tokens.
  double tokensPerSecond = 0;
  /// Operations of the graph, forward and backward, over the devices' peak at
  /// the type of most of them; collectives and copies count as lost.
  double modelFlopsShare = 0;
  DType peakType = DType::Float32;
  std::string binds;
  /// Index of the stage with the fullest rank.
  size_t fullestStage = 0;
};
PlanFigures figuresOf(const PlanResult &result, const Cluster &cluster);

} // namespace monarch::planner
