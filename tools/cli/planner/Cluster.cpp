// cluster: list, show and validate.
#include "planner/cluster/ShowCluster.h"
#include "tools/cli/planner/Inputs.h"

namespace monarch::cli {

namespace {

int showLoaded(const Expected<planner::Cluster> &cluster,
               const std::string &output, const Console &console) {
  if (!cluster)
    return console.fail(cluster.error());
  const std::string file = planner::writeCluster(*cluster);
  return finish(planner::showCluster(*cluster), file,
                Json::parse(file, nullptr, false), output, console);
}

} // namespace

int clusterList(const Console &console) {
  console.result(planner::listMachines(), planner::machinesJson());
  return static_cast<int>(ExitCode::Ok);
}

int clusterShow(const ClusterOptions &options, const Console &console) {
  return showLoaded(loadCluster(options.subject), options.output, console);
}

int clusterValidate(const ClusterOptions &options, const Console &console) {
  const auto cluster = loadClusterParts(options.subject);
  if (!cluster)
    return console.fail(cluster.error());
  Json document;
  document["valid"] = true;
  document["devices"] = cluster->deviceCount();
  std::string kinds;
  for (const planner::Cluster &part : cluster->parts)
    kinds += (kinds.empty() ? "" : " + ") + std::to_string(part.deviceCount()) +
             " x " + part.device.name;
  if (cluster->parts.size() == 1)
    document["digest"] = planner::digest(cluster->parts.front());
  else
    document["kinds"] = cluster->parts.size();
  console.result(options.subject + ": a valid monarch.cluster/1, " + kinds +
                     '\n',
                 document);
  return static_cast<int>(ExitCode::Ok);
}

} // namespace monarch::cli
