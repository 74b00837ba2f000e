//===- Generators.h - synthetic batches and fresh weights -----------------===//
//
// Numbers that are a pure function of a seed, a name and a position, so every
// rank draws the same tensors under every plan, whatever its unit.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/data/Sources.h"

namespace monarch::runtime {

/// A function of (seed, step, input, row, position in the row): integers
/// uniform in [0, bound), ones where the bound is 0, floats normal.
class SyntheticBatches final : public BatchSource {
public:
  explicit SyntheticBatches(int64_t seed) : seed(seed) {}
  Expected<at::Tensor> read(const BatchRequest &request) override;

private:
  int64_t seed;
};

/// Parameters by their first name: normal with a standard deviation of 0.02;
/// ones for one-dimensional tensors called "weight" (norms), zeros for those
/// called "bias". Buffers and constants come from `others`, if there is one.
class InitialWeights final : public WeightSource {
public:
  InitialWeights(int64_t seed, std::unique_ptr<WeightSource> others)
      : seed(seed), others(std::move(others)) {}
  Expected<at::Tensor> read(const WeightRequest &request) override;

private:
  int64_t seed;
  std::unique_ptr<WeightSource> others;
};

} // namespace monarch::runtime
