#include "tools/cli/planner/Inputs.h"

#include "core/support/Files.h"

namespace monarch::cli {

static Error placed(Error error, const std::string &path) {
  error.where = path + (error.where.empty() ? "" : ", " + error.where);
  return error;
}

static std::string nameOf(const std::string &path) {
  return path.substr(path.rfind('/') + 1);
}

Expected<planner::ClusterParts> loadClusterParts(const std::string &name) {
  if (planner::looksLikePreset(name)) {
    auto cluster = planner::presetCluster(name);
    if (!cluster)
      return cluster.error();
    return planner::ClusterParts{{std::move(*cluster)}, false};
  }
  const auto text = readFile(name);
  if (!text)
    return text.error();
  auto cluster = planner::readClusterParts(*text);
  if (!cluster)
    return placed(cluster.error(), name);
  for (planner::Cluster &part : cluster->parts)
    if (part.name.empty())
      part.name = nameOf(name);
  return cluster;
}

Expected<planner::Cluster> readClusterFile(const std::string &path) {
  const auto text = readFile(path);
  if (!text)
    return text.error();
  auto cluster = planner::readCluster(*text);
  if (!cluster)
    return placed(cluster.error(), path);
  if (cluster->name.empty())
    cluster->name = nameOf(path);
  return cluster;
}

Expected<planner::Cluster> loadCluster(const std::string &name) {
  if (planner::looksLikePreset(name))
    return planner::presetCluster(name);
  return readClusterFile(name);
}

Expected<std::optional<planner::PlanFile>> readIfPlan(const std::string &path) {
  const auto text = readFile(path);
  if (!text)
    return text.error();
  constexpr size_t Beginning = 200;
  if (std::string_view(*text).substr(0, Beginning).find("monarch.plan/") ==
      std::string_view::npos)
    return std::optional<planner::PlanFile>();
  auto plan = planner::readPlan(*text);
  if (!plan) {
    Error error = plan.error();
    error.where = path + (error.where.empty() ? "" : ", " + error.where);
    return error;
  }
  return std::optional(std::move(*plan));
}

std::string clusterNameOf(const planner::PlanFile &plan) {
  // A plan's inputs are an object: its reader looks.
  const Json &inputs = plan.document["inputs"];
  if (!inputs.contains("cluster") || !inputs["cluster"].is_object())
    return "";
  const Json name = inputs["cluster"].value("name", Json());
  return name.is_string() ? name.get<std::string>() : "";
}

Expected<planner::PlanRequest> planRequestOf(const PlanOptions &options) {
  if (options.optimizer != "adamw" && options.optimizer != "sgd")
    return Error{"MP3320", ExitCode::Infeasible,
                 options.optimizer + " is not what monarch runs", "--optimizer",
                 "legal: adamw, sgd; others with --target"};
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
  if (!options.masterWeights.empty())
    if (auto error = planner::addPins("master_weights=" + options.masterWeights,
                                      request.pins))
      return *error;
  return request;
}

int finish(const std::string &text, const std::string &file,
           const Json &document, const std::string &output,
           const Console &console) {
  if (output == "-") {
    console.note(text);
    console.file(file);
    return static_cast<int>(ExitCode::Ok);
  }
  if (!output.empty())
    if (const auto error = writeFile(output, file))
      return console.fail(*error);
  console.result(text, document);
  return static_cast<int>(ExitCode::Ok);
}

} // namespace monarch::cli
