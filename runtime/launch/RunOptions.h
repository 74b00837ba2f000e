//===- RunOptions.h - what a run is asked to do ---------------------------===//
//
// The options of `monarch-plan run` and `monarch-run`, and their spelling as
// arguments: the launcher hands them to the ranks unchanged.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/exec/Optimizer.h"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace monarch::runtime {

struct RunOptions {
  /// Of the program files.
  std::string directory;
  /// A .pt2, safetensors or a folder of them; "": none.
  std::string weights;
  /// Fresh parameters from this seed instead of those of `weights`.
  std::optional<int64_t> initSeed;
  /// Batches as safetensors; "": synthetic.
  std::string data;
  /// Without it: all of the data, or one step of synthetic batches.
  std::optional<int64_t> steps;
  int64_t seed = 0;
  OptimizerSettings optimizer;
  bool verify = false;
  /// Shared libraries that bring PyTorch ops.
  std::vector<std::string> libraries;
  std::string saveWeights;
  std::string report;
  /// The longest that one operation may wait for other ranks.
  std::chrono::seconds timeout{120};
  /// Network interface for the ranks' connections; "": by the master's address.
  std::string interface;
};

/// The arguments of monarch-run that mean these options.
std::vector<std::string> argumentsOf(const RunOptions &options);

} // namespace monarch::runtime
