#include "core/support/Files.h"
#include "planner/Planner.h"
#include "tools/cli/ModelInput.h"

namespace monarch::cli {
namespace {

Expected<planner::Cluster> loadCluster(const std::string &name) {
  if (planner::looksLikePreset(name))
    return planner::presetCluster(name);
  const auto text = readFile(name);
  if (!text)
    return text.error();
  auto cluster = planner::readCluster(*text);
  if (!cluster) {
    Error error = cluster.error();
    error.where = name + (error.where.empty() ? "" : ", " + error.where);
    return error;
  }
  return cluster;
}

Expected<planner::PlanRequest> requestOf(const PlanOptions &options) {
  planner::PlanRequest request;
  request.globalRows = options.globalBatch;
  request.optimizer =
      options.optimizer == "sgd" ? OptimizerKind::SGD : OptimizerKind::AdamW;
  if (!options.fix.empty())
    if (auto error = planner::addPins(options.fix, request.pins))
      return *error;
  if (options.microBatch)
    if (auto error = planner::addPins(
            "micro_batch=" + std::to_string(*options.microBatch), request.pins))
      return *error;
  return request;
}

} // namespace

int plan(const PlanOptions &options, const Console &console) {
  const auto cluster = loadCluster(options.cluster);
  if (!cluster)
    return console.fail(cluster.error());
  const auto request = requestOf(options);
  if (!request)
    return console.fail(request.error());
  // The planner brings the graph to the unit that it chooses.
  const auto graph = loadModel(options.model, std::nullopt);
  if (!graph)
    return console.fail(graph.error());
  const auto result = planner::makePlan(*graph, *cluster, *request);
  if (!result)
    return console.fail(result.error());
  const planner::PlanFile file =
      planner::planFileOf(*result, *graph, *cluster, *request);
  const std::string text = planner::writePlan(file);
  const std::string summary = planner::summarize(*result, *cluster);
  if (options.output == "-") {
    console.note(summary);
    console.result(text, file.document);
    return static_cast<int>(ExitCode::Ok);
  }
  if (!options.output.empty())
    if (const auto error = writeFile(options.output, text))
      return console.fail(*error);
  console.result(summary, file.document);
  return static_cast<int>(ExitCode::Ok);
}

} // namespace monarch::cli
