//===- ClusterParts.h - clusters of several kinds of devices --------------===//
//
// A cluster file may list nodes of several kinds. Each kind is a cluster of its
// own here; their nodes share the outermost level.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "planner/cluster/Cluster.h"

namespace monarch::planner {

struct ClusterParts {
  /// One for each entry of "nodes".
  std::vector<Cluster> parts;
  /// One level: all devices are in one box, whatever their kind.
  bool isOneBox = false;

  int64_t deviceCount() const;
};

/// The parts of a file with one kind or several. A device that the file does
/// not describe has the figures of the preset of that name. Errors as
/// readCluster's.
Expected<ClusterParts> readClusterParts(std::string_view text);

} // namespace monarch::planner
