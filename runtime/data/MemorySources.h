//===- MemorySources.h - weights and batches that are there already -------===//
//
// For tests and for callers that hold tensors: by name.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/data/Sources.h"

namespace monarch::runtime {

/// Whole weights by any of their FQNs.
class MemoryWeights final : public WeightSource {
public:
  explicit MemoryWeights(std::map<std::string, at::Tensor> tensors)
      : tensors(std::move(tensors)) {}
  Expected<at::Tensor> read(const WeightRequest &request) override;

private:
  std::map<std::string, at::Tensor> tensors;
};

/// The rows of all steps by input name, in order; inputs without rows as they
/// are.
class MemoryBatches final : public BatchSource {
public:
  explicit MemoryBatches(std::map<std::string, at::Tensor> tensors)
      : tensors(std::move(tensors)) {}
  Expected<at::Tensor> read(const BatchRequest &request) override;

private:
  std::map<std::string, at::Tensor> tensors;
};

/// MP4010: the weights have no such tensor, or another shape or type.
Error missingWeight(const WeightRequest &request, std::string what);
/// MP4011: the batch has no such tensor, or another shape or type.
Error missingBatch(const BatchRequest &request, std::string what);

} // namespace monarch::runtime
