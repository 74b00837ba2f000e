#include "test/fuzz/TextReaders.h"

#include "compiler/import/capture/SizeExpression.h"
#include "core/registry/UserRules.h"
#include "planner/LayoutPlan.h"
#include "planner/cluster/Cluster.h"
#include "planner/cluster/import/Import.h"
#include "planner/families/ModelShape.h"
#include "planner/plan/PlanFile.h"

namespace monarch::test {

namespace {

/// What a source gave is a cluster file, read as one.
std::optional<Error> readImported(const Expected<Json> &document) {
  if (!document)
    return document.error();
  auto cluster = planner::readCluster(writeJson(*document));
  return cluster ? std::nullopt : std::optional<Error>(cluster.error());
}

} // namespace

std::optional<Error> readConfig(std::string_view bytes) {
  auto shape = planner::readModelConfig(bytes, "config.json", 128);
  if (!shape)
    return shape.error();
  return planner::checkShape(*shape);
}

std::optional<Error> readTopologyXml(std::string_view bytes) {
  return readImported(planner::importNcclTopology(bytes, "H100-SXM-80GB"));
}

std::optional<Error> readTopologyMatrix(std::string_view bytes) {
  return readImported(planner::importTopologyMatrix(bytes, "H100-SXM-80GB"));
}

std::optional<Error> readSlurmTopology(std::string_view bytes) {
  return readImported(planner::importSlurmTopology(bytes, "p5.48xlarge"));
}

std::optional<Error> readKubernetesNodes(std::string_view bytes) {
  return readImported(planner::importKubernetesNodes(bytes));
}

/// The table of devices, an empty line, the matrix.
std::optional<Error> readSmiQuery(std::string_view bytes) {
  const size_t end = bytes.find("\n\n");
  return readImported(planner::importSmiQuery(
      bytes.substr(0, end),
      end == std::string_view::npos ? "" : bytes.substr(end + 2)));
}

std::optional<Error> readRules(std::string_view bytes) {
  return addUserRules(bytes, "rules");
}

std::optional<Error> readSizeExpression(std::string_view bytes) {
  const std::string text(bytes);
  auto value = evaluateSize(text, {{"s0", 6}, {"s1", 4}});
  auto solved = solveSize(text, "s0", 24);
  if (value || solved)
    return std::nullopt;
  return Error{"MP1010", ExitCode::BadInput, "no size", "", ""};
}

std::optional<Error> readLayoutOfPlan(std::string_view bytes) {
  auto file = planner::readPlan(bytes);
  if (!file)
    return file.error();
  auto plan = planner::readLayoutPlan(*file);
  return plan ? std::nullopt : std::optional<Error>(plan.error());
}

} // namespace monarch::test
