//===- Traffic.h - what instructions send ---------------------------------===//
//
// Bytes of one run of an instruction at one rank, by the table of
// core/layout/Reshard.h, as the runtime counts them: collectives over one rank
// are none.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/program/StageSizes.h"

namespace monarch {

/// nullopt: it sends nothing and is not counted.
std::optional<int64_t> bytesSent(const Instruction &instruction,
                                 const StageSizes &sizes, int64_t rank);
/// What a rank of the stage sends in one step.
Traffic trafficOf(const StageSizes &sizes, int64_t rank);

} // namespace monarch
