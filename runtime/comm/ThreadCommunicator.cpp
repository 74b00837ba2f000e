//===- ThreadCommunicator.cpp - ranks as threads of one process -----------===//
//
// Members of a group meet twice per collective: once when all have laid down
// their buffers, and once when all have read what they need. Between the two
// every buffer may be read by every member, and only scratch is written.
//
//===----------------------------------------------------------------------===//
#include "runtime/comm/ThreadCommunicator.h"

#include "runtime/support/MemoryTally.h"
#include "runtime/support/Tensors.h"

#include <ATen/ops/maximum.h>
#include <fmt/format.h>

#include <condition_variable>
#include <mutex>
#include <numeric>

namespace monarch::runtime {

namespace {

/// What a member brings to a collective.
struct Offer {
  const char *kind = "";
  at::Tensor tensor;
  std::vector<int64_t> sendSizes;
  std::vector<int64_t> receiveSizes;
};

struct Meeting {
  std::vector<Offer> offers;
  int64_t arrived = 0;
  uint64_t round = 0;
  std::condition_variable changed;
};

struct Parcel {
  at::Tensor tensor;
  bool taken = false;
};

/// (from, to, tag)
using Address = std::tuple<int64_t, int64_t, int64_t>;

int64_t offsetOf(const std::vector<int64_t> &sizes, int64_t block) {
  return std::accumulate(sizes.begin(), sizes.begin() + block, int64_t{0});
}

/// Why these offers do not make one collective, "" when they do.
std::string disagreement(const Group &group, const std::vector<Offer> &offers) {
  auto differ = [&](size_t i, const std::string &how) {
    return fmt::format("ranks {} and {} disagree: {}", group.ranks[0],
                       group.ranks[i], how);
  };
  const Offer &first = offers[0];
  std::string_view kind = first.kind;
  for (size_t i = 1; i < offers.size(); ++i) {
    const Offer &other = offers[i];
    if (kind != other.kind)
      return differ(i, fmt::format("{} against {}", kind, other.kind));
    if (kind == "barrier")
      continue;
    if (first.tensor.scalar_type() != other.tensor.scalar_type())
      return differ(i, fmt::format("element types of {}", kind));
    if (kind.starts_with("all_reduce") &&
        first.tensor.numel() != other.tensor.numel())
      return differ(i, fmt::format("all_reduce of {} against {} elements",
                                   first.tensor.numel(), other.tensor.numel()));
    if (kind == "all_gather" && first.receiveSizes != other.receiveSizes)
      return differ(i, "block sizes of all_gather");
    if (kind == "reduce_scatter" && first.sendSizes != other.sendSizes)
      return differ(i, "block sizes of reduce_scatter");
  }
  if (kind == "all_gather")
    for (size_t i = 0; i < offers.size(); ++i)
      if (offers[i].tensor.numel() != first.receiveSizes[i])
        return differ(i, "size of an own block of all_gather");
  if (kind == "all_to_all")
    for (size_t from = 0; from < offers.size(); ++from)
      for (size_t to = 0; to < offers.size(); ++to)
        if (offers[from].sendSizes[to] != offers[to].receiveSizes[from])
          return fmt::format("ranks {} and {} disagree: all_to_all sends {} "
                             "elements where {} are expected",
                             group.ranks[from], group.ranks[to],
                             offers[from].sendSizes[to],
                             offers[to].receiveSizes[from]);
  return "";
}

} // namespace

struct ThreadWorld::State {
  int64_t size;
  std::chrono::milliseconds patience;
  mutable std::mutex mutex;
  std::map<RankList, Meeting> meetings;
  std::map<Address, Parcel> parcels;
  std::condition_variable parcelsChanged;
  std::optional<Error> failure;

  State(int64_t size, std::chrono::milliseconds patience)
      : size(size), patience(patience) {}

  void fail(const Error &error) {
    std::lock_guard lock(mutex);
    failLocked(error);
  }
  void failLocked(const Error &error) {
    if (!failure)
      failure = error;
    for (auto &[ranks, meeting] : meetings)
      meeting.changed.notify_all();
    parcelsChanged.notify_all();
  }

  /// Waits until `done`; the error that ended the world, or a lost rank.
  template <typename Done>
  std::optional<Error> waitLocked(std::unique_lock<std::mutex> &lock,
                                  std::condition_variable &condition,
                                  const std::string &what, Done done) {
    bool inTime =
        condition.wait_for(lock, patience, [&] { return failure || done(); });
    if (!inTime)
      failLocked(
          lostRank(fmt::format("waited {} ms for {}", patience.count(), what)));
    if (!done() || failure)
      return failure;
    return std::nullopt;
  }
};

namespace {

class ThreadCommunicator final : public Communicator {
public:
  ThreadCommunicator(int64_t rank, ThreadWorld::State &world)
      : Communicator(rank, world.size), world(world) {
    everyone.ranks.resize(world.size);
    std::iota(everyone.ranks.begin(), everyone.ranks.end(), 0);
    everyone.own = rank;
    std::lock_guard lock(world.mutex);
    world.meetings[everyone.ranks].offers.resize(world.size);
  }

  std::optional<Error> barrier() override {
    if (size() == 1)
      return std::nullopt;
    return meet(everyone, {"barrier", {}, {}, {}}, [](const auto &) {});
  }

  void abort(const Error &error) override { world.fail(error); }

  std::optional<Error> waitForSends(int64_t bundle) override {
    std::unique_lock lock(world.mutex);
    for (const Address &address : sent[bundle]) {
      auto error = world.waitLocked(
          lock, world.parcelsChanged,
          fmt::format("rank {} to receive", std::get<1>(address)),
          [&] { return world.parcels[address].taken; });
      if (error)
        return error;
      world.parcels.erase(address);
    }
    sent.erase(bundle);
    return std::nullopt;
  }

private:
  std::optional<Error> connectGroup(const Group &group) override {
    std::lock_guard lock(world.mutex);
    world.meetings[group.ranks].offers.resize(group.ranks.size());
    return std::nullopt;
  }

  std::optional<Error> doAllReduce(const Group &group, const at::Tensor &tensor,
                                   Reduction reduction) override {
    bool isSum = reduction == Reduction::Sum;
    at::Tensor total;
    auto error = meet(
        group, {isSum ? "all_reduce" : "all_reduce of max", tensor, {}, {}},
        [&](const std::vector<Offer> &offers) {
          for (const Offer &offer : offers)
            accumulate(total, offer.tensor, isSum);
        });
    if (!error)
      tensor.copy_(total);
    return error;
  }

  std::optional<Error>
  doAllGather(const Group &group, const at::Tensor &own, const at::Tensor &all,
              const std::vector<int64_t> &receiveSizes) override {
    return meet(group, {"all_gather", own, {}, receiveSizes},
                [&](const std::vector<Offer> &offers) {
                  at::Tensor flat = all.view(-1);
                  for (int64_t i = 0; i < group.size(); ++i)
                    flat.narrow(0, offsetOf(receiveSizes, i), receiveSizes[i])
                        .copy_(offers[i].tensor.view(-1));
                });
  }

  std::optional<Error>
  doReduceScatter(const Group &group, const at::Tensor &all,
                  const at::Tensor &own,
                  const std::vector<int64_t> &sendSizes) override {
    return meet(group, {"reduce_scatter", all, sendSizes, {}},
                [&](const std::vector<Offer> &offers) {
                  at::Tensor total;
                  for (const Offer &offer : offers)
                    accumulate(total,
                               offer.tensor.view(-1).narrow(
                                   0, offsetOf(sendSizes, group.own),
                                   sendSizes[group.own]),
                               true);
                  own.view(-1).copy_(total);
                });
  }

  std::optional<Error>
  doAllToAll(const Group &group, const at::Tensor &out, const at::Tensor &in,
             const std::vector<int64_t> &sendSizes,
             const std::vector<int64_t> &receiveSizes) override {
    return meet(group, {"all_to_all", out, sendSizes, receiveSizes},
                [&](const std::vector<Offer> &offers) {
                  at::Tensor flat = in.view(-1);
                  for (int64_t i = 0; i < group.size(); ++i)
                    flat.narrow(0, offsetOf(receiveSizes, i), receiveSizes[i])
                        .copy_(offers[i].tensor.view(-1).narrow(
                            0, offsetOf(offers[i].sendSizes, group.own),
                            receiveSizes[i]));
                });
  }

  std::optional<Error> doSend(const at::Tensor &tensor, int64_t to, int64_t tag,
                              int64_t bundle) override {
    std::lock_guard lock(world.mutex);
    Address address{rank(), to, tag};
    if (!world.parcels.emplace(address, Parcel{tensor, false}).second)
      return contradiction(
          fmt::format("tag {} to rank {} is used twice", tag, to));
    sent[bundle].push_back(address);
    world.parcelsChanged.notify_all();
    return std::nullopt;
  }

  std::optional<Error> doReceive(const at::Tensor &tensor, int64_t from,
                                 int64_t tag) override {
    std::unique_lock lock(world.mutex);
    Address address{from, rank(), tag};
    auto error = world.waitLocked(
        lock, world.parcelsChanged, fmt::format("rank {} to send", from), [&] {
          auto found = world.parcels.find(address);
          return found != world.parcels.end() && !found->second.taken;
        });
    if (error)
      return error;
    Parcel &parcel = world.parcels[address];
    if (parcel.tensor.numel() != tensor.numel() ||
        parcel.tensor.scalar_type() != tensor.scalar_type()) {
      world.failLocked(contradiction(
          fmt::format("rank {} sends {} elements where rank {} expects {}",
                      from, parcel.tensor.numel(), rank(), tensor.numel())));
      return world.failure;
    }
    tensor.view(-1).copy_(parcel.tensor.view(-1));
    // The tensor stays until `waitForSends`, as with every transport: a rank's
    // peak does not depend on how fast another is.
    parcel.taken = true;
    world.parcelsChanged.notify_all();
    return std::nullopt;
  }

  /// Adds in float32 or wider, in the order of the calls.
  static void accumulate(at::Tensor &total, const at::Tensor &term,
                         bool isSum) {
    bool isNarrow = term.element_size() < 4 && term.is_floating_point();
    at::Tensor wide = isNarrow ? term.to(at::kFloat) : term;
    if (!total.defined())
      total = wide.clone();
    else if (isSum)
      total.add_(wide);
    else
      total = at::maximum(total, wide);
  }

  /// Lays down `offer`, waits for the others, lets `read` see all offers, and
  /// waits until all have read.
  template <typename Read>
  std::optional<Error> meet(const Group &group, Offer offer, Read read) {
    // Scratch of this transport is no memory of the rank.
    MemoryScope uncounted(nullptr);
    std::unique_lock lock(world.mutex);
    Meeting &meeting = world.meetings.at(group.ranks);
    meeting.offers[group.own] = std::move(offer);
    if (auto error = arrive(lock, meeting, group, true))
      return error;
    lock.unlock();
    try {
      read(std::as_const(meeting.offers));
    } catch (const std::exception &exception) {
      Error error = failedCall(messageOf(exception));
      world.fail(error);
      return error;
    }
    lock.lock();
    return arrive(lock, meeting, group, false);
  }

  std::optional<Error> arrive(std::unique_lock<std::mutex> &lock,
                              Meeting &meeting, const Group &group,
                              bool isFirst) {
    if (++meeting.arrived == group.size()) {
      meeting.arrived = 0;
      ++meeting.round;
      if (isFirst) {
        std::string text = disagreement(group, meeting.offers);
        if (!text.empty())
          world.failLocked(contradiction(text));
      } else {
        for (Offer &offer : meeting.offers)
          offer = {};
      }
      meeting.changed.notify_all();
      return world.failure;
    }
    uint64_t round = meeting.round;
    return world.waitLocked(
        lock, meeting.changed,
        fmt::format("the other ranks of {}", shapeText(group.ranks)),
        [&] { return meeting.round != round; });
  }

  ThreadWorld::State &world;
  Group everyone;
  std::map<int64_t, std::vector<Address>> sent;
};

} // namespace

ThreadWorld::ThreadWorld(int64_t size, std::chrono::milliseconds patience)
    : state(std::make_unique<State>(size, patience)) {}

ThreadWorld::~ThreadWorld() = default;

std::unique_ptr<Communicator> ThreadWorld::communicator(int64_t rank) {
  return std::make_unique<ThreadCommunicator>(rank, *state);
}

std::optional<Error> ThreadWorld::failure() const {
  std::lock_guard lock(state->mutex);
  return state->failure;
}

} // namespace monarch::runtime
