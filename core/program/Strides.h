//===- Strides.h - which views lie contiguous -----------------------------===//
//
// The runtime makes every result of its own storage contiguous, so strides
// follow from the view calls alone. Kernels copy operands that are not
// contiguous, which the memory of a call depends on.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/program/StageSizes.h"

namespace monarch {

/// By value, at one rank.
std::vector<bool> contiguousValues(const StageSizes &sizes, int64_t rank);

} // namespace monarch
