//===- GlooCommunicator.h - ranks as processes, over TCP ------------------===//
//
// c10d's Gloo backend, one process group for each distinct list of ranks. Its
// all-reduce serves large tensors. All else is composed of its sends and
// receives, block by block and without copies: a reduce-scatter is an exchange
// and a local sum in rank order (Gloo's own is an all-reduce in disguise), a
// small all-reduce that and a gather, sums of narrow types are exchanged narrow
// and added wide. Gloo kills the process when sizes differ between ranks, so
// `verify` proves them before a program starts.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/comm/Communicator.h"
#include "runtime/comm/JobStore.h"

#include <memory>

namespace monarch::runtime {

struct GlooOptions {
  /// Network interface to listen on; "": that of the address below.
  std::string interface;
  /// "": what this host's name stands for.
  std::string address = "127.0.0.1";
  /// The longest that one operation may wait for other ranks.
  std::chrono::milliseconds patience = std::chrono::seconds(120);
  /// How long a rank that lost a connection waits for the cause of it.
  std::chrono::milliseconds causePatience = std::chrono::seconds(2);
};

/// Connects all ranks of the world with each other: a call of all ranks.
Expected<std::unique_ptr<Communicator>>
connectGloo(std::shared_ptr<JobStore> store, int64_t rank, int64_t size,
            const GlooOptions &options);

} // namespace monarch::runtime
