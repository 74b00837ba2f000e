//===- Pipeline.h - event simulation of pipeline schedules ----------------===//
//
// Runs any schedule in the order in which each stage works off its pieces, and
// says when every piece begins and ends. Checks the closed forms of StepTime,
// and is what a trace shows. Schedules that split the backward keep the order
// that their papers give them, made for pieces of equal length.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "planner/step/Layout.h"

#include <cstdint>
#include <string>
#include <vector>

namespace monarch::planner {

struct PipelineShape {
  /// Seconds of one micro-batch, of all chunks of a stage together.
  std::vector<double> forward, backward;
  /// Of the backward: gradients of weights. For schedules that split it.
  std::vector<double> weights;
  /// Until a result is there for the next stage.
  double hopSeconds = 0;
  int64_t microBatches = 1;
  int64_t chunks = 1;
  Schedule schedule = Schedule::OneForwardOneBackward;

  int64_t stages() const { return static_cast<int64_t>(forward.size()); }
  /// Place of a stage's chunk in the chain of all chunks.
  int64_t placeOf(int64_t stage, int64_t chunk) const {
    return isFolded(schedule) && chunk == 1 ? 2 * stages() - 1 - stage
                                            : chunk * stages() + stage;
  }
};

enum class PieceKind : uint8_t { Forward, Backward, Weights };
struct PipelinePiece {
  PieceKind kind = PieceKind::Forward;
  int64_t chunk = 0, microBatch = 0;
};
/// What each stage works off, in order. Of a split backward the part that later
/// stages wait for is Backward, the rest Weights.
std::vector<std::vector<PipelinePiece>> ordersOf(const PipelineShape &shape);

struct PipelineEvent {
  int64_t stage = 0;
  int64_t chunk = 0;
  int64_t microBatch = 0;
  PieceKind kind = PieceKind::Forward;
  double begin = 0, end = 0;
};

struct PipelineRun {
  /// From the first begin to the last end; where the backward is split, of the
  /// stage for which that is longest: stages update without waiting for each
  /// other (both papers validate the update afterwards).
  double seconds = 0;
  /// By begin, then stage.
  std::vector<PipelineEvent> events;
  /// What every stage does after the pipeline has drained, in order: name and
  /// seconds.
  std::vector<std::pair<std::string, double>> after;
};

/// MP3303: interleaving wants micro-batches in multiples of the stages.
Expected<PipelineRun> runPipeline(const PipelineShape &shape);
/// Its seconds alone, for a shape that can run.
double pipelineSeconds(const PipelineShape &shape);

/// Chrome's trace format: a process for each stage, slices in microseconds.
std::string traceOf(const PipelineRun &run);

} // namespace monarch::planner
