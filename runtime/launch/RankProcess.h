//===- RankProcess.h - the life of one rank's process ---------------------===//
//
// Reads and proves the program, meets the other ranks, runs the steps, checks,
// saves and reports. Does not return when another rank has ended the job.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/launch/JobPlace.h"
#include "runtime/launch/RunOptions.h"

namespace monarch::runtime {

/// The exit code; errors are written to stderr, or where `place` says.
int runRank(const RunOptions &options, const JobPlace &place);

} // namespace monarch::runtime
