//===- JobPlace.h - which rank of which job this process is ---------------===//
//
// Read from torchrun's environment: RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT.
// If TORCHELASTIC_USE_AGENT_STORE is True the launcher serves the store and
// every rank is a client, under the prefix of its attempt; else rank 0 serves.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/support/Error.h"
#include "runtime/comm/JobStore.h"

#include <functional>

namespace monarch::runtime {

struct JobPlace {
  int64_t rank = 0;
  int64_t worldSize = 1;
  StoreAddress store;
  /// torchrun prints what is written here as the root cause; "": nowhere.
  std::string errorFile;
  /// A pipe to the launcher that takes the error instead of stderr; -1: none.
  int errorPipe = -1;
  /// A page of the launcher's that says where the rank is; -1: none.
  int progressFile = -1;
};

/// Prefix of the keys of one attempt under an elastic agent's store.
std::string attemptPrefix(const std::string &restartCount);

/// Variables with descriptors that the launcher hands down.
inline constexpr const char *errorPipeVariable = "MONARCH_ERROR_PIPE";
inline constexpr const char *progressFileVariable = "MONARCH_PROGRESS_FILE";

/// Without RANK and WORLD_SIZE: alone. MP4007 names what is missing or wrong.
Expected<JobPlace>
placeFromEnvironment(const std::function<const char *(const char *)> &variable);

} // namespace monarch::runtime
