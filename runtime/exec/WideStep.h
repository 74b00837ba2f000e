//===- WideStep.h - what rounding alone does to one process ---------------===//
//
// Where numbers cancel, one process in float32 is itself far from the exact
// result, and ranks that sum in another order differ as much without a fault.
// The same step in float64 says how far.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/exec/WholeTensors.h"

namespace monarch::runtime {

/// Every floating type as float64, every complex one as complex128.
Program inFloat64(Program program);

struct StepNumbers {
  double loss = 0;
  NamedTensors gradients;
};

/// One step of a program of one rank in its own types or, `isWide`, in float64;
/// from `state`: its parameters, buffers and constants by first name.
Expected<StepNumbers> stepFrom(const Program &oneProcess, bool isWide,
                               const NamedTensors &state, int64_t seed,
                               int64_t step, BatchSource &batches);

} // namespace monarch::runtime
