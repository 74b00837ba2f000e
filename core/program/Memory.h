//===- Memory.h - bytes of tensors alive over a schedule ------------------===//
//
// Walks a rank's schedule as the runtime does and counts storages: a view keeps
// its base's storage, a send holds its tensor until the runtime waits for it, a
// saved value lives in the slot of its unit.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/program/StageSizes.h"

namespace monarch {

/// Of each of these ranks of the stage.
std::vector<int64_t> peakBytesOf(const StageSizes &sizes,
                                 OptimizerKind optimizer,
                                 const std::vector<int64_t> &ranks);

} // namespace monarch
