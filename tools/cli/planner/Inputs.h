//===- Inputs.h - clusters by name or file --------------------------------===//
#pragma once

#include "planner/Planner.h"
#include "planner/cluster/ClusterParts.h"
#include "tools/cli/planner/Options.h"

namespace monarch::cli {

/// A preset's name, or a monarch.cluster/1 file.
Expected<planner::Cluster> loadCluster(const std::string &name);
Expected<planner::Cluster> readClusterFile(const std::string &path);
/// The same, where the file may list several kinds of devices.
Expected<planner::ClusterParts> loadClusterParts(const std::string &name);

/// A monarch.plan/1 by its first line; nullopt: something else.
Expected<std::optional<planner::PlanFile>> readIfPlan(const std::string &path);
/// The cluster that a plan was made for; "": it does not say.
std::string clusterNameOf(const planner::PlanFile &plan);
/// What the options ask of the planner of this project's own plans.
Expected<planner::PlanRequest> planRequestOf(const PlanOptions &options);

/// Result of a verb that makes a document: with -o FILE the document goes
/// there, with -o - to stdout and the text to stderr.
int finish(const std::string &text, const std::string &file,
           const Json &document, const std::string &output,
           const Console &console);

} // namespace monarch::cli
