//===- Session.h - a whole program in one process -------------------------===//
//
// Ranks as threads, from weights and batches to losses and whole gradients:
// what tests of random plans and debugging need. Cheap: hundreds of small
// programs in a test. A one-rank program is the one-process meaning.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/exec/WholeTensors.h"

#include <chrono>

namespace monarch::runtime {

struct SessionOptions {
  int64_t steps = 1;
  int64_t seed = 0;
  OptimizerSettings optimizer;
  /// Called from the threads of all ranks, from one at a time.
  std::function<void(int64_t rank, const InstructionPlace &place,
                     const std::vector<at::Tensor> &values)>
      onInstruction;
  /// A rank that waits longer for another calls it lost.
  std::chrono::milliseconds patience = std::chrono::seconds(60);
};

struct SessionResult {
  /// By rank, then by step.
  std::vector<std::vector<StepResult>> ranks;
  /// Per step, of the last stage.
  std::vector<double> losses;
  /// Per step, whole, by first name, before clipping.
  std::vector<NamedTensors> gradients;
  /// After the last step.
  NamedTensors weights;
  NamedTensors buffers;
};

/// Runs every rank on a thread of its own (LibTorch on one core each). The
/// sources are asked by one thread at a time.
Expected<SessionResult> runThreads(const Program &program,
                                   WeightSource &weights, BatchSource &batches,
                                   const SessionOptions &options);

} // namespace monarch::runtime
