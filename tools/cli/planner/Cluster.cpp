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
  const auto cluster = readClusterFile(options.subject);
  if (!cluster)
    return console.fail(cluster.error());
  Json document;
  document["valid"] = true;
  document["devices"] = cluster->deviceCount();
  document["digest"] = planner::digest(*cluster);
  console.result(options.subject + ": a valid monarch.cluster/1, " +
                     std::to_string(cluster->deviceCount()) + " x " +
                     cluster->device.name + '\n',
                 document);
  return static_cast<int>(ExitCode::Ok);
}

} // namespace monarch::cli
