//===- Memory.h - bytes of tensors alive over a schedule ------------------===//
//
// Walks a rank's schedule as the runtime does and counts storages: a view keeps
// its base's storage, a send holds its tensor until the runtime waits for it, a
// saved value lives in the slot of its unit.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/program/StageSizes.h"

#include <array>

namespace monarch {

/// What a storage holds. Saved: from forward to backward, of all units in
/// flight. Communication: what collectives and receives deliver. Workspace: of
/// the call that runs at the peak.
enum class MemoryUse : uint8_t {
  Parameters,
  Gradients,
  Optimizer,
  Buffers,
  Saved,
  Passing,
  Communication,
  Workspace
};
inline constexpr size_t MemoryUses = 8;
std::string_view toString(MemoryUse use);

/// All that is alive at a rank's peak; `byUse` adds up to `bytes`.
struct PeakMemory {
  int64_t bytes = 0;
  std::array<int64_t, MemoryUses> byUse{};

  int64_t of(MemoryUse use) const { return byUse[static_cast<size_t>(use)]; }
};
/// Of the rank of a stage that needs the most.
PeakMemory fullestRank(const Program &program, const Role &role);

/// Of each of these ranks of the stage.
std::vector<int64_t> peakBytesOf(const StageSizes &sizes,
                                 OptimizerKind optimizer,
                                 const std::vector<int64_t> &ranks);

} // namespace monarch
