//===- PlanKinds.h - plans that are neither ops nor one layout ------------===//
#pragma once

#include "planner/cluster/ClusterParts.h"
#include "tools/cli/planner/Model.h"

namespace monarch::cli {

/// Serving a decoder: what is needed and reserved, limits, speed. On several
/// kinds of devices a pipeline with a stage on each.
int planServing(const PlanOptions &options, const Model &model,
                const planner::ClusterParts &cluster, const Console &console);

/// Training on several kinds of devices, for a target of its layout.
int planMixed(const PlanOptions &options, const Model &model,
              const planner::ClusterParts &cluster, const Console &console);

/// Nullopt: the file is no list of embedding tables.
std::optional<int> planTablesIfAny(const PlanOptions &options,
                                   const planner::ClusterParts &cluster,
                                   const Console &console);

} // namespace monarch::cli
