//===- Failure.h - the one cause that ends a job --------------------------===//
//
// The rank that fails first leaves its error in the job's store; every other
// rank that then fails, or is told to end, reports that error instead of the
// broken connection that it saw itself.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/comm/JobStore.h"

namespace monarch::runtime {

/// An error as text for another process, and back.
std::string packError(const Error &error);
/// Nothing when the text is not a packed error.
std::optional<Error> unpackError(const std::string &text);

/// Leaves an error unless there is one; returns the one that is there.
Error reportFailure(JobStore &store, const Error &error);
/// The error that is there.
std::optional<Error> reportedFailure(JobStore &store);
/// Waits a moment for the rank that failed to say why; else `own`.
Error causeOf(JobStore &store, const Error &own,
              std::chrono::milliseconds patience);

} // namespace monarch::runtime
