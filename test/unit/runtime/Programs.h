//===- Programs.h - hand-written programs for the tests of the runtime ----===//
//
// A two-layer model, loss = sum((x w1 w2)^2) / 2 over the global batch, spread
// over stages, data and tensor axes with every kind of instruction, written out
// by hand: the runtime is tested without the compiler.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/program/Program.h"

namespace monarch::test {

struct TwoLayers {
  int stages = 1;       // 1 or 2: w1 on stage 0, w2 on the last
  int64_t data = 1;     // ranks that take different units
  int64_t tensor = 1;   // ranks that split the hidden dim
  bool sharded = false; // w1 lies split over the data axis between steps
  int64_t unitsPerReplica = 1;
  int64_t unitRows = 3;
  int64_t inner = 5;
  int64_t hidden = 7;
  int64_t outer = 4;
  DType type = DType::Float64;
  OptimizerKind optimizer = OptimizerKind::SGD;
};

/// Parameters "w1", "w2"; input "x". `predicted` is left to the caller.
Program twoLayerProgram(const TwoLayers &shape);

} // namespace monarch::test
