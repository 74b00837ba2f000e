//===- Verification.h - against the one-process meaning -------------------===//
//
// Rank 0 runs the one-process program beside the job, step by step from the
// same weights: loss, gradients and buffers of each step are compared, then the
// reference updates its weights with the job's own gradients, so that rounding
// does not add up over steps and every step is checked from equal weights. What
// the update makes of them is compared at the end. Where a step is off, it is
// run again in float64: what rounding of one process explains is no fault.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/exec/WholeTensors.h"

namespace monarch::runtime {

/// Worst errors: max|difference| / max(max|tensor|, floor * largest entry of
/// its kind). The floor is 1e-3; 1e-2 for tensors that are zero but for
/// rounding (a key bias's gradient). Of a loss or gradient above the tolerance
/// at most tolerance * |difference| / (4 * how far one process is from
/// float64).
struct VerifyFigures {
  double loss = 0;
  double gradients = 0;
  double buffers = 0;
  double weights = 0;
  /// The tensor with the worst error over its tolerance.
  std::string worst;
  double tolerance = 0;
  bool holds() const {
    return loss <= tolerance && gradients <= tolerance &&
           buffers <= tolerance && weights <= tolerance;
  }
};

class Verification {
public:
  /// `oneProcess` outlives it. MP4009 when it is not of the same model, batch
  /// and optimizer as `program`.
  static Expected<std::unique_ptr<Verification>>
  create(const Program &program, const Program &oneProcess,
         WeightSource &weights, int64_t seed, OptimizerSettings optimizer);
  ~Verification();

  /// The job's step: its loss and whole gradients before clipping.
  std::optional<Error> step(int64_t step, BatchSource &batches, double loss,
                            const NamedTensors &gradients);
  void compareBuffers(const NamedTensors &buffers);
  void compareWeights(const NamedTensors &weights);
  const VerifyFigures &figures() const;

private:
  struct Reference;
  explicit Verification(std::unique_ptr<Reference> reference);
  std::unique_ptr<Reference> reference;
};

} // namespace monarch::runtime
