//===- Monitor.h - no rank waits for a dead one ---------------------------===//
//
// A thread beside the rank: it says every moment where the rank is, listens to
// the next ranks of the ring, and ends the job when one of them falls silent or
// somebody has left a failure in the store. Work that hangs inside Gloo does
// not matter: the callback ends the process.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/comm/JobStore.h"

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace monarch::runtime {

inline constexpr std::chrono::milliseconds beatInterval{200};
/// Silence after which a rank is called lost.
inline constexpr std::chrono::seconds heartbeatWindow{5};

class Monitor {
public:
  /// `store` is its own connection. `progress` tells where the rank is;
  /// `onFailure` does not return to the monitor's loop.
  Monitor(std::shared_ptr<JobStore> store, int64_t rank, int64_t size,
          std::function<std::string()> progress,
          std::function<void(const Error &)> onFailure);
  /// Says goodbye: a rank that ends is not lost.
  ~Monitor();

private:
  void run();
  std::optional<Error> beat();
  std::optional<Error> listen();

  struct Neighbour {
    int64_t rank;
    std::string beat;
    std::chrono::steady_clock::time_point changed;
  };

  std::shared_ptr<JobStore> store;
  int64_t rank;
  std::function<std::string()> progress;
  std::function<void(const Error &)> onFailure;
  std::vector<Neighbour> neighbours;
  int64_t beats = 0;
  std::mutex mutex;
  std::condition_variable stopped;
  bool stopping = false;
  std::thread thread;
};

/// Where a rank was when it last gave a sign: "step 3, forward of unit 1, ...".
std::string lastSign(JobStore &store, int64_t rank);

} // namespace monarch::runtime
