//===- Monitor.cpp - no rank waits for a dead one -------------------------===//
//
// See Monitor.h. A beat is "<count> <where>"; "bye" is the last one.
//
//===----------------------------------------------------------------------===//
#include "runtime/launch/Monitor.h"

#include "runtime/comm/Communicator.h"
#include "runtime/comm/Failure.h"

#include <fmt/format.h>

namespace monarch::runtime {

using Clock = std::chrono::steady_clock;

/// So that the loss of two neighbours at once does not go unseen.
static constexpr int64_t watchedNeighbours = 2;
static constexpr const char *goodbye = "bye";

static std::string beatKey(int64_t rank) {
  return fmt::format("beat/{}", rank);
}

/// The part of a beat after its count.
static std::string whereOf(const std::string &beat) {
  size_t space = beat.find(' ');
  return space == std::string::npos ? "" : beat.substr(space + 1);
}

Monitor::Monitor(std::shared_ptr<JobStore> store, int64_t rank, int64_t size,
                 std::function<std::string()> progress,
                 std::function<void(const Error &)> onFailure)
    : store(std::move(store)), rank(rank), progress(std::move(progress)),
      onFailure(std::move(onFailure)) {
  for (int64_t i = 1; i <= std::min(watchedNeighbours, size - 1); ++i)
    neighbours.push_back({(rank + i) % size, "", Clock::now()});
  thread = std::thread([this] { run(); });
}

Monitor::~Monitor() {
  {
    std::lock_guard lock(mutex);
    stopping = true;
  }
  stopped.notify_all();
  thread.join();
  store->set(beatKey(rank), goodbye);
}

void Monitor::run() {
  std::unique_lock lock(mutex);
  while (!stopping) {
    lock.unlock();
    std::optional<Error> error = beat();
    if (!error)
      error = listen();
    lock.lock();
    if (error && !stopping) {
      onFailure(*error);
      return;
    }
    stopped.wait_for(lock, beatInterval, [&] { return stopping; });
  }
}

std::optional<Error> Monitor::beat() {
  auto error =
      store->set(beatKey(rank), fmt::format("{} {}", ++beats, progress()));
  if (error)
    error->where = fmt::format("rank {}, {}", rank, progress());
  return error;
}

std::optional<Error> Monitor::listen() {
  if (auto failure = reportedFailure(*store))
    return failure;
  std::vector<std::string> keys;
  for (const Neighbour &neighbour : neighbours)
    keys.push_back(beatKey(neighbour.rank));
  auto heard = store->peek(keys);
  if (!heard)
    return heard.error();
  for (size_t i = 0; i < neighbours.size(); ++i) {
    Neighbour &neighbour = neighbours[i];
    // One that has not begun is the rendezvous' affair.
    if (!(*heard)[i] || *(*heard)[i] == goodbye ||
        *(*heard)[i] != neighbour.beat) {
      neighbour.beat = (*heard)[i].value_or("");
      neighbour.changed = Clock::now();
    } else if (Clock::now() - neighbour.changed > heartbeatWindow) {
      Error lost =
          lostRank(fmt::format("rank {} fell silent for {} s", neighbour.rank,
                               heartbeatWindow.count()));
      lost.where =
          fmt::format("rank {}, {}", neighbour.rank, whereOf(neighbour.beat));
      return reportFailure(*store, lost);
    }
  }
  return std::nullopt;
}

std::string lastSign(JobStore &store, int64_t rank) {
  auto heard = store.peek({beatKey(rank)});
  if (!heard || !(*heard)[0])
    return "before it began";
  return whereOf(*(*heard)[0]);
}

} // namespace monarch::runtime
