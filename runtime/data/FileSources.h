//===- FileSources.h - weights and batches from files ---------------------===//
//
// Safetensors, and the weights inside model files. Tensors are found by name
// and read by offset; shapes must be those of the program, types of one kind
// (floating, integer) are converted.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/data/Sources.h"

namespace monarch::runtime {

/// A .pt2, a TorchScript .pt, a .safetensors file, or a folder of .safetensors
/// files.
Expected<std::unique_ptr<WeightSource>> openWeights(const std::string &path);

/// One tensor per input, the rows of all steps in order; an input without rows
/// once, or once a unit behind each other along its first dim.
class FileBatches : public BatchSource {
public:
  static Expected<std::unique_ptr<FileBatches>> open(const std::string &path);
  /// How many global batches there are for this program's inputs, without end
  /// where no input has rows; inputs that are missing are errors of `read`.
  virtual int64_t steps(const Program &program) const = 0;
};

} // namespace monarch::runtime
