//===- GlooCommunicator.cpp - ranks as processes, over TCP ----------------===//
//
// See GlooCommunicator.h. Blocks that only move go as bytes, so every element
// type takes the same way. The one source that includes Gloo's header.
//
//===----------------------------------------------------------------------===//
#include "runtime/comm/GlooCommunicator.h"

#include "runtime/comm/Failure.h"
#include "runtime/comm/JobStoreImpl.h"
#include "runtime/support/MemoryTally.h"
#include "runtime/support/Tensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <algorithm>
#include <numeric>

namespace monarch::runtime {

namespace {

using Device = std::shared_ptr<::gloo::transport::Device>;
using ProcessGroup = c10::intrusive_ptr<c10d::ProcessGroupGloo>;

using Blocks = std::vector<at::Tensor>;

/// Larger all-reduces take Gloo's ring, which needs little scratch; smaller
/// ones fewer rounds and headers.
constexpr size_t ringBytes = size_t{1} << 20;
/// Tags of exchanges start again here.
constexpr int64_t maxTag = int64_t{1} << 20;

bool addsNatively(at::ScalarType type) {
  return type == at::kFloat || type == at::kDouble || type == at::kLong ||
         type == at::kInt;
}

at::ScalarType wideType(at::ScalarType type) {
  return c10::isFloatingType(type) ? at::kFloat : at::kLong;
}

std::vector<int64_t> evenSizes(int64_t count, int64_t parts) {
  std::vector<int64_t> sizes;
  for (int64_t i = 0; i < parts; ++i)
    sizes.push_back(count * (i + 1) / parts - count * i / parts);
  return sizes;
}

class GlooCommunicator final : public Communicator {
public:
  GlooCommunicator(std::shared_ptr<JobStore> store, int64_t rank, int64_t size,
                   const GlooOptions &options)
      : Communicator(rank, size), store(std::move(store)), options(options) {}

  /// Connects the world; sends and receives go there.
  std::optional<Error> open() {
    if (size() == 1)
      return std::nullopt;
    return guarded([&] {
      if (!options.interface.empty())
        device =
            c10d::ProcessGroupGloo::createDeviceForInterface(options.interface);
      else if (!options.address.empty())
        device =
            c10d::ProcessGroupGloo::createDeviceForHostname(options.address);
      else
        device = c10d::ProcessGroupGloo::createDefaultDevice();
      world = makeGroup("world", rank(), size());
    });
  }

  std::optional<Error> barrier() override {
    if (size() == 1)
      return std::nullopt;
    std::string key = fmt::format("barrier/{}", barriers++);
    auto arrived = store->add(key, 1);
    if (!arrived)
      return arrived.error();
    if (*arrived == size())
      return store->set(key + "/open", "1");
    // As long as they live: whoever dies or falls silent leaves a failure.
    while (true) {
      if (store->get(key + "/open", options.causePatience))
        return std::nullopt;
      if (auto failure = reportedFailure(*store))
        return failure;
      if (auto count = store->add(key, 0); !count)
        return count.error();
    }
  }

  void abort(const Error &error) override {
    if (size() == 1 || aborted)
      return;
    aborted = true;
    reportFailure(*store, error);
    // Closes the connections: peers that wait for this rank fail at once.
    pending.clear();
    groups.clear();
    world.reset();
  }

  std::optional<Error> waitForSends(int64_t bundle) override {
    auto found = pending.find(bundle);
    if (found == pending.end())
      return std::nullopt;
    auto error = guarded([&] {
      for (const Sent &sent : found->second)
        sent.work->wait();
    });
    pending.erase(bundle);
    return error;
  }

private:
  struct Sent {
    std::vector<at::Tensor> tensors;
    c10::intrusive_ptr<c10d::Work> work;
  };

  ProcessGroup makeGroup(const std::string &name, int64_t rank, int64_t size) {
    auto groupOptions =
        c10d::ProcessGroupGloo::Options::create(options.patience);
    groupOptions->devices.push_back(device);
    groupOptions->threads = 1;
    return c10::make_intrusive<c10d::ProcessGroupGloo>(
        c10::make_intrusive<c10d::PrefixStore>("gloo/" + name,
                                               store->implementation().store),
        static_cast<int>(rank), static_cast<int>(size), groupOptions);
  }

  std::optional<Error> connectGroup(const Group &group) override {
    return guarded([&] {
      groups[group.ranks] =
          makeGroup(fmt::format("{}", fmt::join(group.ranks, ".")), group.own,
                    group.size());
    });
  }

  ProcessGroup &processGroup(const Group &group) {
    if (aborted)
      throw std::runtime_error("this rank gave up already");
    return groups.at(group.ranks);
  }

  std::optional<Error> doAllReduce(const Group &group, const at::Tensor &tensor,
                                   Reduction reduction) override {
    return guarded([&] {
      if (addsNatively(tensor.scalar_type()) && tensor.nbytes() > ringBytes) {
        std::vector<at::Tensor> tensors{tensor};
        c10d::AllreduceOptions reduceOptions;
        if (reduction == Reduction::Max)
          reduceOptions.reduceOp = c10d::ReduceOp::MAX;
        processGroup(group)->allreduce(tensors, reduceOptions)->wait();
        return;
      }
      at::Tensor flat = tensor.view(-1);
      if (group.size() == 2) {
        // The whole to each other: as many bytes, in one round.
        at::Tensor both = flat.new_empty({2, flat.numel()});
        both[group.own].copy_(flat);
        exchange(group, {flat, flat}, {both[0], both[1]});
        flat.copy_(reduced(both, reduction));
        return;
      }
      std::vector<int64_t> sizes = evenSizes(flat.numel(), group.size());
      at::Tensor own = reduced(
          exchangedBlocks(group, flat, sizes, sizes[group.own]), reduction);
      gather(group, own.to(tensor.scalar_type()), flat, sizes);
    });
  }

  std::optional<Error>
  doAllGather(const Group &group, const at::Tensor &own, const at::Tensor &all,
              const std::vector<int64_t> &receiveSizes) override {
    return guarded([&] { gather(group, own, all, receiveSizes); });
  }

  std::optional<Error>
  doReduceScatter(const Group &group, const at::Tensor &all,
                  const at::Tensor &own,
                  const std::vector<int64_t> &sendSizes) override {
    return guarded([&] {
      at::Tensor blocks =
          exchangedBlocks(group, all.view(-1), sendSizes, own.numel());
      own.view(-1).copy_(reduced(blocks, Reduction::Sum));
    });
  }

  std::optional<Error>
  doAllToAll(const Group &group, const at::Tensor &out, const at::Tensor &in,
             const std::vector<int64_t> &sendSizes,
             const std::vector<int64_t> &receiveSizes) override {
    return guarded([&] {
      Blocks sends = out.view(-1).split_with_sizes(sendSizes);
      Blocks receives = in.view(-1).split_with_sizes(receiveSizes);
      receives[group.own].copy_(sends[group.own]);
      exchange(group, sends, receives);
    });
  }

  std::optional<Error> doSend(const at::Tensor &tensor, int64_t to, int64_t tag,
                              int64_t bundle) override {
    if (tensor.numel() == 0)
      return std::nullopt;
    return guarded([&] {
      Sent sent{{bytesOf(tensor)}, {}};
      sent.work = peers()->send(sent.tensors, static_cast<int>(to),
                                static_cast<int>(tag));
      pending[bundle].push_back(std::move(sent));
    });
  }

  std::optional<Error> doReceive(const at::Tensor &tensor, int64_t from,
                                 int64_t tag) override {
    if (tensor.numel() == 0)
      return std::nullopt;
    return guarded([&] {
      std::vector<at::Tensor> tensors{bytesOf(tensor)};
      peers()
          ->recv(tensors, static_cast<int>(from), static_cast<int>(tag))
          ->wait();
    });
  }

  ProcessGroup &peers() {
    if (aborted)
      throw std::runtime_error("this rank gave up already");
    return world;
  }

  /// Block i to and from each other member i, straight from and into the
  /// buffers; empty blocks are no messages. The own block is the caller's.
  void exchange(const Group &group, const Blocks &sends,
                const Blocks &receives) {
    ProcessGroup &members = processGroup(group);
    // Members exchange in the same order, so a counter tells exchanges apart.
    int tag = static_cast<int>(exchanges[group.ranks]++ % maxTag);
    std::vector<std::vector<at::Tensor>> held;
    std::vector<c10::intrusive_ptr<c10d::Work>> works;
    for (int64_t i = 1; i < group.size(); ++i) {
      int64_t from = (group.own + group.size() - i) % group.size();
      if (receives[from].numel() == 0)
        continue;
      held.push_back({bytesOf(receives[from])});
      works.push_back(members->recv(held.back(), static_cast<int>(from), tag));
    }
    for (int64_t i = 1; i < group.size(); ++i) {
      int64_t to = (group.own + i) % group.size();
      if (sends[to].numel() == 0)
        continue;
      held.push_back({bytesOf(sends[to])});
      works.push_back(members->send(held.back(), static_cast<int>(to), tag));
    }
    for (const auto &work : works)
      work->wait();
  }

  void gather(const Group &group, const at::Tensor &own, const at::Tensor &all,
              const std::vector<int64_t> &receiveSizes) {
    Blocks receives = all.view(-1).split_with_sizes(receiveSizes);
    receives[group.own].copy_(own.view(-1));
    exchange(group, Blocks(group.size(), own.view(-1)), receives);
  }

  /// Row i: member i's block for this rank.
  at::Tensor exchangedBlocks(const Group &group, const at::Tensor &flat,
                             const std::vector<int64_t> &sendSizes,
                             int64_t ownSize) {
    at::Tensor blocks = flat.new_empty({group.size(), ownSize});
    Blocks sends = flat.split_with_sizes(sendSizes);
    blocks[group.own].copy_(sends[group.own]);
    exchange(group, sends, blocks.unbind());
    return blocks;
  }

  /// Of the rows, in order, in a type that is wide enough.
  static at::Tensor reduced(const at::Tensor &rows, Reduction reduction) {
    at::ScalarType type = addsNatively(rows.scalar_type())
                              ? rows.scalar_type()
                              : wideType(rows.scalar_type());
    at::Tensor total = rows[0].to(type, /*non_blocking=*/false, /*copy=*/true);
    for (int64_t i = 1; i < rows.size(0); ++i) {
      at::Tensor row = rows[i].to(type);
      if (reduction == Reduction::Sum)
        total.add_(row);
      else
        total = total.maximum(row);
    }
    return total;
  }

  /// Exceptions become errors; a broken connection the cause of its breaking.
  template <typename Action> std::optional<Error> guarded(Action action) {
    try {
      // Scratch of the transport is no tensor of the program.
      MemoryScope uncounted(nullptr);
      action();
      return std::nullopt;
    } catch (const std::exception &exception) {
      return causeOf(*store, lostRank(messageOf(exception)),
                     options.causePatience);
    }
  }

  std::shared_ptr<JobStore> store;
  GlooOptions options;
  Device device;
  ProcessGroup world;
  std::map<RankList, ProcessGroup> groups;
  std::map<RankList, int64_t> exchanges;
  std::map<int64_t, std::vector<Sent>> pending;
  int64_t barriers = 0;
  bool aborted = false;
};

} // namespace

Expected<std::unique_ptr<Communicator>>
connectGloo(std::shared_ptr<JobStore> store, int64_t rank, int64_t size,
            const GlooOptions &options) {
  auto communicator =
      std::make_unique<GlooCommunicator>(std::move(store), rank, size, options);
  if (auto error = communicator->open())
    return *error;
  return std::unique_ptr<Communicator>(std::move(communicator));
}

} // namespace monarch::runtime
