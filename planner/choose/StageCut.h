//===- StageCut.h - layers of pipeline stages -----------------------------===//
//
// Cuts a chain of layers into stages so that the slowest is as fast as can be
// and each fits, by a dynamic programme over stages and layers. Stages stay
// near the even share; among equals the cut nearest to even.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace monarch::planner {

struct StageCutProblem {
  int64_t stages = 1;
  int64_t layers = 1;
  /// Layers that a stage may have above or below the even share.
  int64_t slack = 0;
  /// Of a stage with `count` layers from `first` on.
  std::function<double(int64_t stage, int64_t first, int64_t count)> seconds;
  std::function<bool(int64_t stage, int64_t first, int64_t count)> fits;
};

/// Layers of each stage; empty: no cut fits.
std::vector<int64_t> cutStages(const StageCutProblem &problem);

} // namespace monarch::planner
