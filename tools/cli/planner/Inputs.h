//===- Inputs.h - clusters by name or file --------------------------------===//
#pragma once

#include "planner/cluster/Cluster.h"
#include "tools/cli/planner/Options.h"

namespace monarch::cli {

/// A preset's name, or a monarch.cluster/1 file.
Expected<planner::Cluster> loadCluster(const std::string &name);
Expected<planner::Cluster> readClusterFile(const std::string &path);

/// Result of a verb that makes a document: with -o FILE the document goes
/// there, with -o - to stdout and the text to stderr.
int finish(const std::string &text, const std::string &file,
           const Json &document, const std::string &output,
           const Console &console);

} // namespace monarch::cli
