//===- EndOfJob.h - how a rank's process tells why it ends ----------------===//
//
// One error, said once, whichever thread of the process comes first: to the
// launcher's pipe or stderr, and to torchrun's error file.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/launch/JobPlace.h"

namespace monarch::runtime {

/// Says the error and leaves the process at once, with its exit code: threads
/// that hang in a transport are not waited for.
[[noreturn]] void endJob(const JobPlace &place, const Error &error);

/// One line: id, rank and place, reason.
std::string causeLine(const Error &error);

} // namespace monarch::runtime
