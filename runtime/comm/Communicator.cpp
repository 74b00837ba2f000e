//===- Communicator.cpp - checks and counters of all transports -----------===//
//
// See Communicator.h.
//
//===----------------------------------------------------------------------===//
#include "runtime/comm/Communicator.h"

#include "core/layout/Reshard.h"
#include "runtime/support/Tensors.h"

#include <ATen/ops/view_as_real.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace monarch::runtime {

Error lostRank(std::string what) {
  return {"MP4001", ExitCode::LostRank, std::move(what), "", ""};
}

Error failedCall(std::string what) {
  return {"MP4002", ExitCode::RunFailed, std::move(what), "", ""};
}

Error contradiction(std::string what) {
  return {"MP4003", ExitCode::Internal, std::move(what), "", ""};
}

namespace {

int64_t sum(const std::vector<int64_t> &sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
}

/// Both buffers are contiguous, of one type, and as long as the sizes say.
std::optional<Error> checkBuffers(const Group &group, const at::Tensor &in,
                                  const at::Tensor &out,
                                  const std::vector<int64_t> &sizes,
                                  const at::Tensor &sized) {
  if (!in.is_contiguous() || !out.is_contiguous())
    return contradiction("a buffer of a collective is not contiguous");
  if (in.scalar_type() != out.scalar_type())
    return contradiction("buffers of a collective differ in type");
  if (static_cast<int64_t>(sizes.size()) != group.size())
    return contradiction(fmt::format("{} split sizes for a group of {} ranks",
                                     sizes.size(), group.size()));
  if (std::any_of(sizes.begin(), sizes.end(),
                  [](int64_t size) { return size < 0; }) ||
      sum(sizes) != sized.numel())
    return contradiction(
        fmt::format("split sizes {} do not cover a buffer of {} elements",
                    shapeText(sizes), sized.numel()));
  return std::nullopt;
}

/// Complex numbers are added as pairs of reals.
at::Tensor realsOf(const at::Tensor &tensor) {
  return tensor.is_complex() ? at::view_as_real(tensor) : tensor;
}

std::vector<int64_t> scaled(std::vector<int64_t> sizes, int64_t factor) {
  for (int64_t &size : sizes)
    size *= factor;
  return sizes;
}

} // namespace

std::optional<Error> Communicator::connect(const std::set<RankList> &lists) {
  for (const RankList &ranks : lists) {
    if (groups.count(ranks))
      continue;
    auto own = std::find(ranks.begin(), ranks.end(), ownRank);
    if (own == ranks.end())
      return contradiction(fmt::format("rank {} is no member of group {}",
                                       ownRank, shapeText(ranks)));
    Group group{ranks, own - ranks.begin()};
    if (group.size() > 1)
      if (auto error = connectGroup(group))
        return error;
    groups.emplace(ranks, std::move(group));
  }
  return std::nullopt;
}

std::optional<Error> Communicator::allReduce(const Group &group,
                                             const at::Tensor &tensor,
                                             Reduction reduction) {
  if (!tensor.is_contiguous())
    return contradiction("the tensor of an all-reduce is not contiguous");
  if (group.size() == 1)
    return std::nullopt;
  count("all_reduce",
        allReduceBytes(static_cast<int64_t>(tensor.nbytes()), group.size()));
  return doAllReduce(group, realsOf(tensor), reduction);
}

std::optional<Error>
Communicator::allGather(const Group &group, const at::Tensor &own,
                        const at::Tensor &all,
                        const std::vector<int64_t> &receiveSizes) {
  if (auto error = checkBuffers(group, own, all, receiveSizes, all))
    return error;
  if (receiveSizes[group.own] != own.numel())
    return contradiction("an all-gather's own block has another size");
  if (group.size() == 1) {
    all.view(-1).copy_(own.view(-1));
    return std::nullopt;
  }
  count("all_gather",
        allGatherBytes(static_cast<int64_t>(own.nbytes()), group.size()));
  return doAllGather(group, own, all, receiveSizes);
}

std::optional<Error>
Communicator::reduceScatter(const Group &group, const at::Tensor &all,
                            const at::Tensor &own,
                            const std::vector<int64_t> &sendSizes) {
  if (auto error = checkBuffers(group, all, own, sendSizes, all))
    return error;
  if (sendSizes[group.own] != own.numel())
    return contradiction("a reduce-scatter's own block has another size");
  if (group.size() == 1) {
    own.view(-1).copy_(all.view(-1));
    return std::nullopt;
  }
  count("reduce_scatter",
        exchangeBytes(scaled(sendSizes, all.element_size()), group.own));
  return doReduceScatter(group, realsOf(all), realsOf(own),
                         scaled(sendSizes, all.is_complex() ? 2 : 1));
}

std::optional<Error>
Communicator::allToAll(const Group &group, const at::Tensor &out,
                       const at::Tensor &in,
                       const std::vector<int64_t> &sendSizes,
                       const std::vector<int64_t> &receiveSizes) {
  if (auto error = checkBuffers(group, out, in, sendSizes, out))
    return error;
  if (auto error = checkBuffers(group, out, in, receiveSizes, in))
    return error;
  if (sendSizes[group.own] != receiveSizes[group.own])
    return contradiction("an all-to-all keeps a block of two sizes");
  if (group.size() == 1) {
    in.view(-1).copy_(out.view(-1));
    return std::nullopt;
  }
  count("all_to_all",
        exchangeBytes(scaled(sendSizes, out.element_size()), group.own));
  return doAllToAll(group, out, in, sendSizes, receiveSizes);
}

std::optional<Error> Communicator::send(const at::Tensor &tensor, int64_t to,
                                        int64_t tag, int64_t bundle) {
  if (!tensor.is_contiguous())
    return contradiction("a tensor to send is not contiguous");
  count("send", static_cast<int64_t>(tensor.nbytes()));
  return doSend(tensor, to, tag, bundle);
}

std::optional<Error> Communicator::receive(const at::Tensor &tensor,
                                           int64_t from, int64_t tag) {
  if (!tensor.is_contiguous())
    return contradiction("a tensor to receive into is not contiguous");
  return doReceive(tensor, from, tag);
}

void Communicator::count(const char *kind, int64_t bytes) {
  if (!counting)
    return;
  traffic.bytes[kind] += bytes;
  traffic.collectives[kind] += 1;
}

RankList ranksAlong(const Mesh &mesh, int stage,
                    std::vector<int64_t> coordinates, std::vector<int> axes) {
  std::sort(axes.begin(), axes.end());
  RankList ranks;
  int64_t count = 1;
  for (int axis : axes)
    count *= mesh.axes[axis].size;
  for (int64_t member = 0; member < count; ++member) {
    int64_t rest = member;
    for (size_t i = axes.size(); i-- > 0;) {
      coordinates[axes[i]] = rest % mesh.axes[axes[i]].size;
      rest /= mesh.axes[axes[i]].size;
    }
    ranks.push_back(stage * mesh.size() + mesh.rankInStage(coordinates));
  }
  return ranks;
}

} // namespace monarch::runtime
