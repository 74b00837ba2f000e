#include "tools/cli/planner/Inputs.h"

#include "core/support/Files.h"

namespace monarch::cli {

Expected<planner::Cluster> readClusterFile(const std::string &path) {
  const auto text = readFile(path);
  if (!text)
    return text.error();
  auto cluster = planner::readCluster(*text);
  if (!cluster) {
    Error error = cluster.error();
    error.where = path + (error.where.empty() ? "" : ", " + error.where);
    return error;
  }
  if (cluster->name.empty())
    cluster->name = path.substr(path.rfind('/') + 1);
  return cluster;
}

Expected<planner::Cluster> loadCluster(const std::string &name) {
  if (planner::looksLikePreset(name))
    return planner::presetCluster(name);
  return readClusterFile(name);
}

int finish(const std::string &text, const std::string &file,
           const Json &document, const std::string &output,
           const Console &console) {
  if (output == "-") {
    console.note(text);
    console.result(file, document);
    return static_cast<int>(ExitCode::Ok);
  }
  if (!output.empty())
    if (const auto error = writeFile(output, file))
      return console.fail(*error);
  console.result(text, document);
  return static_cast<int>(ExitCode::Ok);
}

} // namespace monarch::cli
