//===- LocalRun.h - the ranks of a program on this machine ----------------===//
//
// `monarch-plan run` starts one monarch-run per rank under torchrun's
// environment and serves the store itself, on a port that the system chooses,
// so the loss of any rank is an ordinary case. When one fails the others are
// told why, given a moment, and killed.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/support/Error.h"
#include "runtime/launch/RunOptions.h"

namespace monarch::runtime {

/// monarch-run beside this process's own executable, or on the PATH.
Expected<std::string> findRankExecutable();

/// Runs to the end; what ranks print goes to this process's stdout. The error
/// is the first cause, with its exit code: 8 the run failed, 9 a rank was lost.
std::optional<Error> runLocal(const RunOptions &options,
                              const std::string &rankExecutable);

} // namespace monarch::runtime
