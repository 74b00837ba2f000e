//===- PlanFigures.cpp - what a plan of our own comes to ------------------===//
#include "planner/PlanFigures.h"

#include "planner/step/Band.h"
#include "planner/step/Machine.h"

#include <algorithm>

namespace monarch::planner {

namespace {

constexpr double Picosecond = 1e-12;

double bandOf(const PlanResult &result, const Cluster &cluster) {
  const double step = static_cast<double>(result.price.stepPicoseconds);
  const StageTime &busiest = result.price.busiestStage();
  BandFacts facts;
  facts.unsteadyShare = std::clamp(
      static_cast<double>(busiest.idlePicoseconds + busiest.stepPicoseconds) /
          step,
      0.0, 1.0);
  const Expected<DeviceModel> device = findDevice(cluster.device.name);
  facts.isUnmeasured = !device || !device->isMeasured;
  facts.isLateGeneration = device && device->generation >= Generation::Hopper;
  // Kernels that the host launches one by one are those of eager runs.
  facts.hostShare = 1;
  return bandHalfWidth(facts, builtInBand());
}

struct Work {
  double flops = 0;
  DType type = DType::Float32;
};

/// Of one unit.
Work workOf(const Graph &graph) {
  std::map<DType, double> byType;
  auto typesOf = [&](const std::vector<ValueId> &values) {
    std::vector<TensorType> types;
    for (ValueId value : values)
      if (value != None)
        types.push_back({graph.value(value).type, graph.value(value).shape});
    return types;
  };
  Work work;
  for (const Op &op : graph.ops) {
    const std::vector<TensorType> results = typesOf(op.results);
    const auto flops = static_cast<double>(
        callCost(op.name, typesOf(op.operands), results).flops);
    work.flops += flops;
    if (!results.empty())
      byType[results.front().type] += flops;
  }
  const auto most = std::max_element(
      byType.begin(), byType.end(),
      [](const auto &a, const auto &b) { return a.second < b.second; });
  if (most != byType.end())
    work.type = most->first;
  return work;
}

/// Indices of the widest look-up in a table, of one row.
double tokensOfRow(const Graph &graph) {
  int64_t most = 0;
  for (const Op &op : graph.ops)
    if (op.phase == Phase::Forward && op.name == "aten::embedding" &&
        op.operands.size() > 1 && op.operands[1] != None) {
      int64_t count = 1;
      for (int64_t size : graph.value(op.operands[1]).shape)
        count *= size;
      most = std::max(most, count);
    }
  return static_cast<double>(most) / static_cast<double>(graph.unitRows);
}

std::string bindingPart(const StepParts &parts) {
  const std::pair<int64_t, const char *> list[] = {
      {parts.computePicoseconds, "compute"},
      {parts.collectivePicoseconds, "collectives"},
      {parts.sendPicoseconds, "sends between stages"},
      {parts.idlePicoseconds, "pipeline bubble"}};
  return std::max_element(
             std::begin(list), std::end(list),
             [](const auto &a, const auto &b) { return a.first < b.first; })
      ->second;
}

} // namespace

PlanFigures figuresOf(const PlanResult &result, const Cluster &cluster) {
  PlanFigures figures;
  figures.stepSeconds =
      static_cast<double>(result.price.stepPicoseconds) * Picosecond;
  figures.halfWidth = bandOf(result, cluster);
  const auto rows = static_cast<double>(result.decisions.globalRows);
  figures.rowsPerSecond = rows / figures.stepSeconds;
  figures.tokensPerSecond = figures.rowsPerSecond * tokensOfRow(*result.graph);
  const Work work = workOf(*result.graph);
  figures.peakType = work.type;
  const auto &peaks = cluster.device.peakFlopsPerSecond;
  const auto peak = peaks.find(work.type);
  if (peak != peaks.end())
    figures.modelFlopsShare =
        work.flops * rows / static_cast<double>(result.graph->unitRows) /
        (figures.stepSeconds * static_cast<double>(peak->second) *
         static_cast<double>(cluster.deviceCount()));
  figures.binds = bindingPart(result.price.parts());
  for (size_t stage = 0; stage < result.memory.size(); ++stage)
    if (result.memory[stage].bytes > result.memory[figures.fullestStage].bytes)
      figures.fullestStage = stage;
  return figures;
}

} // namespace monarch::planner
