//===- Worlds.h - the same function on every rank -------------------------===//
//
// Ranks of a test are threads; what they talk through is the transport under
// test.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/comm/GlooCommunicator.h"
#include "runtime/comm/ThreadCommunicator.h"

#include <functional>
#include <thread>

namespace monarch::test {

enum class TransportKind { Threads, Gloo };

using RankFunction =
    std::function<std::optional<Error>(runtime::Communicator &)>;

/// Errors by rank.
inline std::vector<std::optional<Error>>
runWorld(TransportKind kind, int64_t size, const RankFunction &function,
         std::chrono::milliseconds patience = std::chrono::seconds(30)) {
  runtime::ThreadWorld world(size, patience);
  auto store = runtime::JobStore::forThreads();
  std::vector<std::optional<Error>> errors(size);
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      std::unique_ptr<runtime::Communicator> communicator;
      if (kind == TransportKind::Threads) {
        communicator = world.communicator(rank);
      } else {
        runtime::GlooOptions options;
        options.patience = patience;
        auto connected = runtime::connectGloo(store, rank, size, options);
        if (!connected) {
          errors[rank] = connected.error();
          return;
        }
        communicator = std::move(*connected);
      }
      errors[rank] = function(*communicator);
      if (errors[rank])
        communicator->abort(*errors[rank]);
    });
  for (std::thread &thread : threads)
    thread.join();
  return errors;
}

/// "" when no rank failed.
inline std::string textOf(const std::vector<std::optional<Error>> &errors) {
  std::string text;
  for (const auto &error : errors)
    if (error)
      text += toString(*error) + "\n";
  return text;
}

} // namespace monarch::test
