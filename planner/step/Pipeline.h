//===- Pipeline.h - event simulation of pipeline schedules ----------------===//
//
// Runs 1F1B, plain and interleaved, in the order that each stage works off its
// micro-batches, and says when every piece begins and ends. Checks the closed
// forms of StepTime, and is what a trace shows.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/support/Error.h"

#include <cstdint>
#include <string>
#include <vector>

namespace monarch::planner {

struct PipelineShape {
  /// Seconds of one micro-batch, of all chunks of a stage together.
  std::vector<double> forward, backward;
  /// Until a result is there for the next stage.
  double hopSeconds = 0;
  int64_t microBatches = 1;
  int64_t chunks = 1;
};

struct PipelineEvent {
  int64_t stage = 0;
  int64_t chunk = 0;
  int64_t microBatch = 0;
  bool isForward = true;
  double begin = 0, end = 0;
};

struct PipelineRun {
  double seconds = 0;
  /// By begin, then stage.
  std::vector<PipelineEvent> events;
  /// What every stage does after the pipeline has drained, in order: name and
  /// seconds.
  std::vector<std::pair<std::string, double>> after;
};

/// MP3303: interleaving wants micro-batches in multiples of the stages.
Expected<PipelineRun> runPipeline(const PipelineShape &shape);

/// Chrome's trace format: a process for each stage, slices in microseconds.
std::string traceOf(const PipelineRun &run);

} // namespace monarch::planner
