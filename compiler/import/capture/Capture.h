//===- Capture.h - from an exported program to a joint graph --------------===//
//
// Runs the program's ops on tensors without data, writes down what LibTorch
// dispatches below autograd, then lets LibTorch derive the backward. The result
// is raw: detach and alias, sizes as numbers, dead ops (Normalize.h).
// LibTorch's exceptions end here.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/import/capture/ExportedProgram.h"

#include <set>

namespace monarch {

/// `--loss`: an output as it is, or a mean cross-entropy over logits.
struct LossSpec {
  enum class Kind : uint8_t { Output, CrossEntropy, CausalLm };
  Kind kind = Kind::Output;
  /// Name or index of an output; "": output 0.
  std::string output;
  /// Input, or the name of a new one.
  std::string labels;
};

struct CaptureOptions {
  /// Value of each symbol of the inputs' sizes.
  std::map<std::string, int64_t> symbols;
  LossSpec loss;
  /// False: forward alone.
  bool train = true;
  /// All floating types become float64, the program's own casts too.
  bool promoteToFloat64 = false;
  /// A mean that ends in a scalar becomes sum times a leaf InverseCount. That
  /// is right only where it goes linearly into the loss, which the caller
  /// checks: the leaves named here are not made.
  std::set<std::string> plainMeans;
};

Expected<Graph> capture(const ExportedProgram &program,
                        const CaptureOptions &options);

} // namespace monarch
