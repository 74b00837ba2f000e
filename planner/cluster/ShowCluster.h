//===- ShowCluster.h - clusters for people --------------------------------===//
#pragma once

#include "core/support/Json.h"
#include "planner/cluster/Cluster.h"

namespace monarch::planner {

/// Devices, levels and where the figures come from, on one screen.
std::string showCluster(const Cluster &cluster);

/// Instance types and devices that have a preset.
std::string listMachines();
Json machinesJson();

} // namespace monarch::planner
