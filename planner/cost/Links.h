//===- Links.h - time on the links between ranks --------------------------===//
//
// Ranks are laid on devices in order, so a group of mesh axes has a stride and
// spans so many domains of each link level. A collective is a ring: all members
// inside a domain drive their own link out of it, hence the outer level's
// bandwidth is that of the members together; a group with one member a node has
// one link's. Latency grows with the members inside a domain, and with the
// logarithm of the domains outside.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/layout/Layout.h"
#include "planner/cluster/Cluster.h"

#include <map>

namespace monarch::planner {

class Links {
public:
  Links(const Cluster &cluster, const Mesh &mesh)
      : cluster(cluster), mesh(mesh) {}

  /// `bytes` is what one rank sends (core's table of collective bytes);
  /// `rounds` is 2 for an all-reduce, else 1.
  int64_t ringPicoseconds(int stage, const std::vector<int> &axes,
                          int64_t bytes, int rounds) const;
  /// Each rank sends to each other directly: what leaves a node goes through
  /// the rank's own link.
  int64_t exchangePicoseconds(int stage, const std::vector<int> &axes,
                              int64_t bytes) const;
  /// From a rank to the rank with the same coordinates in another stage: the
  /// time that the link is busy, and the latency after it.
  struct Hop {
    int64_t busyPicoseconds = 0;
    int64_t latencyPicoseconds = 0;
  };
  Hop hop(int stage, int peerStage, int64_t bytes) const;

private:
  /// Of one group: ranks, and for each level the most domains that a group of
  /// these axes touches in this stage.
  struct Span {
    int64_t ranks = 1;
    std::vector<int64_t> domains;
  };
  const Span &span(int stage, const std::vector<int> &axes) const;
  int64_t latency(const Span &span) const;
  /// The level that joins all pairs of ranks of two stages.
  size_t levelBetween(int stage, int peerStage) const;

  const Cluster &cluster;
  const Mesh &mesh;
  mutable std::map<std::pair<int, std::vector<int>>, Span> spans;
  mutable std::map<std::pair<int, int>, size_t> hopLevels;
};

/// amount / (perSecond * efficiency), rounded up.
int64_t picosecondsFor(int64_t amount, int64_t perSecond,
                       int64_t efficiency = Million);

} // namespace monarch::planner
