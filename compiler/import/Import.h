//===- Import.h - a model file in, its joint graph out --------------------===//
//
// The front door of the compiler: .pt2 archives of torch.export, read without
// Python and without opening a pickle, and TorchScript files, which are
// programs (runtime/script). The graph is that of one unit of rows, forward and
// backward, with names of weights in place of weights.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/graph/Graph.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace monarch {

struct ImportOptions {
  /// "": output 0. OUTPUT: an output by name or index. "ce:LOGITS,LABELS" and
  /// "causal_lm:LOGITS,LABELS": a mean cross-entropy over an output; LABELS is
  /// an input, or becomes one (int64, the logits' shape without classes).
  std::string loss;
  /// Shapes of inputs whose sizes the file leaves open.
  std::map<std::string, std::vector<int64_t>> shapes;
  /// Types of inputs of a TorchScript file, which does not say them.
  std::map<std::string, DType> types;
  /// Rows of the unit, for a dynamic batch; those of the export when absent.
  std::optional<int64_t> unitRows;
  /// False: forward alone.
  bool train = true;
  /// For tests: every floating type becomes float64, the model's own casts too.
  bool promoteToFloat64 = false;
  /// For tests: every block is captured, equal ones too.
  bool captureAllBlocks = false;
};

/// A size that the export left open.
struct OpenSize {
  std::string symbol;
  int64_t low = 0;
  /// Absent: no bound.
  std::optional<int64_t> high;
  /// Dims of inputs that depend on it: "input_ids dim 0".
  std::vector<std::string> places;
};

/// What a model file says of itself.
struct FileFacts {
  /// "torch.export archive, schema 8.20".
  std::string format;
  /// "torch 2.15.0+cu132"; empty when the file does not say.
  std::string producer;
  int64_t nodes = 0;
  /// Of all weights and constants in the archive; 0: a weightless export.
  int64_t weightBytes = 0;
  std::vector<OpenSize> openSizes;
  /// What was changed on the way in, for people.
  std::vector<std::string> notes;
};

/// `facts` is filled where given, also when the graph cannot be made.
Expected<Graph> importModel(const std::string &path,
                            const ImportOptions &options,
                            FileFacts *facts = nullptr);

} // namespace monarch
