//===- ThreadCommunicator.h - ranks as threads of one process -------------===//
//
// For tests and debugging: no sockets, deterministic sums in rank order, and
// every call is compared between the members before a byte moves, so ranks that
// disagree get an error that names both. One failing rank ends all.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/comm/Communicator.h"

#include <chrono>
#include <memory>

namespace monarch::runtime {

/// What the ranks of one process share.
class ThreadWorld {
public:
  /// A rank that waits longer than `patience` for another calls it lost.
  explicit ThreadWorld(int64_t size, std::chrono::milliseconds patience =
                                         std::chrono::seconds(60));
  ~ThreadWorld();

  /// For the thread of that rank; the world must outlive it.
  std::unique_ptr<Communicator> communicator(int64_t rank);
  /// The first error that a rank gave up with.
  std::optional<Error> failure() const;

  struct State;

private:
  std::unique_ptr<State> state;
};

} // namespace monarch::runtime
