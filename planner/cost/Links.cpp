//===- Links.cpp - time on the links between ranks ------------------------===//
#include "planner/cost/Links.h"

#include <algorithm>
#include <bit>
#include <set>

namespace monarch::planner {

int64_t picosecondsFor(int64_t amount, int64_t perSecond, int64_t efficiency) {
  constexpr __int128 PicosecondsPerSecond = 1'000'000'000'000;
  __int128 rate = static_cast<__int128>(perSecond) * efficiency;
  __int128 work = static_cast<__int128>(amount) * PicosecondsPerSecond;
  // amount < 2^63 and 10^12 < 2^40, so a product with Million may overflow:
  // divide in two steps, the second exact to a millionth of a unit.
  __int128 whole = work / rate * Million;
  __int128 rest = (work % rate * Million + rate - 1) / rate;
  return static_cast<int64_t>(whole + rest);
}

const Links::Span &Links::span(int stage, const std::vector<int> &axes) const {
  auto [entry, isNew] = spans.try_emplace({stage, axes});
  Span &result = entry->second;
  if (!isNew)
    return result;
  result.domains.assign(cluster.levels.size(), 1);
  for (int axis : axes)
    result.ranks *= mesh.axes[axis].size;

  // All groups are translations of one; where a stage does not begin at the
  // border of a domain, some touch more domains than others.
  std::vector<int64_t> offsets = {0};
  std::vector<int64_t> origins = {static_cast<int64_t>(stage) * mesh.size()};
  int64_t stride = 1;
  for (int axis = static_cast<int>(mesh.axes.size()) - 1; axis >= 0; --axis) {
    bool inGroup = std::find(axes.begin(), axes.end(), axis) != axes.end();
    std::vector<int64_t> &list = inGroup ? offsets : origins;
    size_t count = list.size();
    for (int64_t i = 1; i < mesh.axes[axis].size; ++i)
      for (size_t j = 0; j < count; ++j)
        list.push_back(list[j] + i * stride);
    stride *= mesh.axes[axis].size;
  }
  for (size_t level = 0; level < cluster.levels.size(); ++level)
    for (int64_t origin : origins) {
      std::set<int64_t> touched;
      for (int64_t offset : offsets)
        touched.insert((origin + offset) / cluster.levels[level].size);
      result.domains[level] =
          std::max(result.domains[level], static_cast<int64_t>(touched.size()));
    }
  return result;
}

int64_t Links::latency(const Span &span) const {
  int64_t total = 0, members = span.ranks;
  for (size_t level = 0; level < cluster.levels.size(); ++level) {
    int64_t joined = (members + span.domains[level] - 1) / span.domains[level];
    int64_t steps = joined - 1;
    if (level > 0)
      steps = std::min<int64_t>(
          steps, 2 * (std::bit_width(static_cast<uint64_t>(joined)) - 1) + 1);
    total += steps * cluster.levels[level].latencyPicoseconds;
    members = span.domains[level];
  }
  return total;
}

int64_t Links::ringPicoseconds(int stage, const std::vector<int> &axes,
                               int64_t bytes, int rounds) const {
  const Span &group = span(stage, axes);
  if (group.ranks <= 1)
    return 0;
  int64_t slowest = 0;
  int64_t inner = group.ranks; // domains of the level inside, ranks at first
  for (size_t level = 0; level < cluster.levels.size(); ++level) {
    if (inner > group.domains[level]) { // this level joins some of them
      int64_t together = std::max<int64_t>(1, group.ranks / inner);
      const LinkLevel &link = cluster.levels[level];
      slowest = std::max(slowest,
                         picosecondsFor(bytes, link.bytesPerSecond * together,
                                        link.efficiency));
    }
    inner = group.domains[level];
  }
  return cluster.device.collectiveLaunchPicoseconds + rounds * latency(group) +
         slowest;
}

int64_t Links::exchangePicoseconds(int stage, const std::vector<int> &axes,
                                   int64_t bytes) const {
  const Span &group = span(stage, axes);
  if (group.ranks <= 1)
    return 0;
  int64_t slowest = 0;
  int64_t nearer = 1; // members of a domain of the level inside
  for (size_t level = 0; level < cluster.levels.size(); ++level) {
    int64_t farther = group.ranks - nearer;
    const LinkLevel &link = cluster.levels[level];
    if (farther > 0)
      slowest = std::max(slowest,
                         picosecondsFor(bytes * farther / (group.ranks - 1),
                                        link.bytesPerSecond, link.efficiency));
    nearer = group.ranks / group.domains[level];
  }
  return cluster.device.collectiveLaunchPicoseconds + latency(group) + slowest;
}

size_t Links::levelBetween(int stage, int peerStage) const {
  auto [entry, isNew] = hopLevels.try_emplace({stage, peerStage}, 0);
  if (!isNew)
    return entry->second;
  int64_t size = mesh.size();
  for (int64_t rank = 0; rank < size; ++rank)
    for (size_t level = entry->second; level < cluster.levels.size(); ++level) {
      entry->second = level;
      int64_t domain = cluster.levels[level].size;
      if ((stage * size + rank) / domain == (peerStage * size + rank) / domain)
        break;
    }
  return entry->second;
}

Links::Hop Links::hop(int stage, int peerStage, int64_t bytes) const {
  if (cluster.levels.empty())
    return {};
  const LinkLevel &link = cluster.levels[levelBetween(stage, peerStage)];
  return {picosecondsFor(bytes, link.bytesPerSecond, link.efficiency),
          link.latencyPicoseconds};
}

} // namespace monarch::planner
