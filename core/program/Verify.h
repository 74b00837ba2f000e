//===- Verify.h - proofs about a program, from its files alone ------------===//
//
// Emit, the command line and every rank call the same verifier before the first
// op: collectives match on all ranks in kind, size, group and order; no
// deadlock; values are defined before use, not used after free, freed once;
// shapes and types where they are decidable; slots of units; bytes and counts
// as predicted.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/program/Program.h"

namespace monarch {

/// Of a program or a plan: what the verifier walks one by one.
inline constexpr int64_t MaxRanks = 1 << 16;

/// All violations (MP2xxx), empty when the program is proved.
std::vector<Error> verify(const Program &program);

/// What one rank sends in one step, by counting its schedule.
Traffic trafficOf(const Program &program, int64_t rank);
/// Peak bytes of tensors alive on one rank over its schedule, with persistent
/// values, gradients, optimizer states, saved slots and each call's workspace.
int64_t peakBytesOf(const Program &program, int64_t rank);
/// Sums trafficOf over ranks and takes the largest peak (equal rank classes are
/// computed once): fills Program::predicted*.
void predict(Program &program);

} // namespace monarch
