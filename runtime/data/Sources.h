//===- Sources.h - where whole tensors come from --------------------------===//
//
// The executor asks for weights by name and for batches by unit, and cuts out
// its rank's block itself. Sources are files, or generators whose numbers
// depend on the name and position alone, so every rank draws the same tensors.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/program/Program.h"

#include <ATen/core/Tensor.h>

#include <memory>

namespace monarch::runtime {

/// A weight of the model, whole.
struct WeightRequest {
  /// All FQNs; [0] is the graph's name.
  const std::vector<std::string> &names;
  const Storage &storage;
  DType type;
  std::vector<int64_t> shape;
  /// Else a buffer or a constant of the file.
  bool isParameter = true;
};

class WeightSource {
public:
  virtual ~WeightSource() = default;
  virtual Expected<at::Tensor> read(const WeightRequest &request) = 0;
};

/// One unit's tensor of one input, whole.
struct BatchRequest {
  const ProgramInput &input;
  DType type;
  std::vector<int64_t> shape;
  int64_t step;
  /// Of the global batch.
  int64_t unit;
  int64_t unitsPerStep;
  bool isBatched() const { return input.rowDim >= 0; }
};

class BatchSource {
public:
  virtual ~BatchSource() = default;
  virtual Expected<at::Tensor> read(const BatchRequest &request) = 0;
};

} // namespace monarch::runtime
