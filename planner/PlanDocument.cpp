//===- PlanDocument.cpp - a result as monarch.plan/1 ----------------------===//
//
// Integers and what the user gave are exact; predictions are rounded to six
// digits.
//
//===----------------------------------------------------------------------===//
#include "planner/PlanFigures.h"

namespace monarch::planner {

namespace {

double seconds(int64_t picoseconds) {
  return rounded(static_cast<double>(picoseconds) * 1e-12);
}

Json degreesJson(const Degrees &degrees) {
  return {{"dp", degrees.dp},
          {"tp", degrees.tp},
          {"pp", degrees.pp},
          {"micro_batch", degrees.unitRows}};
}

Json pinsJson(const Pins &pins) {
  Json json = Json::object();
  if (pins.dp)
    json["dp"] = *pins.dp;
  if (pins.tp)
    json["tp"] = *pins.tp;
  if (pins.pp)
    json["pp"] = *pins.pp;
  if (pins.microBatch)
    json["micro_batch"] = *pins.microBatch;
  if (pins.schedule)
    json["schedule"] = toString(*pins.schedule);
  if (pins.masterWeights)
    json["master_weights"] = *pins.masterWeights ? "float32" : "none";
  return json;
}

Json originsJson(const Pins &pins, const Graph &graph) {
  auto origin = [](bool pinned) {
    return toString(pinned ? Origin::User : Origin::Planner);
  };
  Json json;
  json["dp"] = origin(pins.dp.has_value());
  json["tp"] = origin(pins.tp.has_value());
  json["pp"] = origin(pins.pp.has_value());
  bool chosen = graph.dynamicBatch && graph.separable;
  json["micro_batch"] = pins.microBatch ? toString(Origin::User)
                        : chosen        ? toString(Origin::Planner)
                                        : toString(Origin::Default);
  json["schedule"] = toString(pins.schedule ? Origin::User : Origin::Default);
  // Left out where it is none by default.
  if (pins.masterWeights)
    json["master_weights"] = toString(Origin::User);
  json["stage_of"] = toString(Origin::Planner);
  json["choices"] = toString(Origin::Planner);
  json["layouts"] = toString(Origin::Default);
  return json;
}

Json memoryJson(const PeakMemory &memory) {
  Json json;
  for (size_t use = 0; use < MemoryUses; ++use)
    json[std::string(toString(static_cast<MemoryUse>(use)))] =
        memory.byUse[use];
  json["total"] = memory.bytes;
  return json;
}

Json predictionJson(const PlanResult &result, const Cluster &cluster) {
  const PlanFigures figures = figuresOf(result, cluster);
  const StepParts parts = result.price.parts();
  const double step = seconds(result.price.stepPicoseconds);
  Json json;
  json["step_seconds"] = step;
  json["band"] = {{"low_seconds", rounded(step * (1 - figures.halfWidth))},
                  {"high_seconds", rounded(step * (1 + figures.halfWidth))}};
  json["seconds"] = {{"compute", seconds(parts.computePicoseconds)},
                     {"collectives", seconds(parts.collectivePicoseconds)},
                     {"sends", seconds(parts.sendPicoseconds)},
                     {"idle", seconds(parts.idlePicoseconds)}};
  json["rows_per_second"] = rounded(figures.rowsPerSecond);
  if (figures.tokensPerSecond > 0)
    json["tokens_per_second"] = rounded(figures.tokensPerSecond);
  if (figures.modelFlopsShare > 0)
    json["mfu"] = rounded(figures.modelFlopsShare);
  json["binds"] = figures.binds;
  json["peak_tensor_bytes"] = result.peakBytes;
  json["memory_bytes"] = memoryJson(result.memory[figures.fullestStage]);
  json["memory_bytes"]["stage"] = figures.fullestStage;
  json["memory_bytes"]["usable"] = cluster.device.usableBytes();
  json["memory_bytes"]["context"] = cluster.device.reservedBytes;
  json["bytes"] = Json::object();
  for (const auto &[kind, bytes] : result.traffic.bytes)
    json["bytes"][kind] = bytes;
  json["collectives"] = Json::object();
  for (const auto &[kind, count] : result.traffic.collectives)
    json["collectives"][kind] = count;
  json["stages"] = Json::array();
  for (size_t s = 0; s < result.price.stages.size(); ++s) {
    const StageTime &time = result.price.stages[s];
    json["stages"].push_back(
        {{"forward_seconds", seconds(time.forwardPicoseconds)},
         {"backward_seconds", seconds(time.backwardPicoseconds)},
         {"step_seconds", seconds(time.stepPicoseconds)},
         {"collective_seconds", seconds(time.collectivePicoseconds)},
         {"idle_seconds", seconds(time.idlePicoseconds)},
         {"memory_bytes", memoryJson(result.memory[s])}});
  }
  return json;
}

} // namespace

PlanFile planFileOf(const PlanResult &result, const Graph &graph,
                    const Cluster &cluster, const PlanRequest &request) {
  PlanFile plan;
  Json &document = plan.document;
  document["schema"] = "monarch.plan/1";
  document["inputs"]["graph"] = {{"digest", digest(graph)},
                                 {"unit_rows", graph.unitRows}};
  document["inputs"]["cluster"] = {{"name", cluster.name},
                                   {"devices", cluster.deviceCount()},
                                   {"digest", digest(cluster)}};
  document["inputs"]["workload"] = {
      {"global_batch", request.globalRows},
      {"mode", graph.loss == None ? "infer" : "train"},
      {"optimizer", toString(request.optimizer)}};
  document["inputs"]["pins"] = pinsJson(request.pins);
  document["target"] = "monarch";
  document["degrees"] = degreesJson(result.degrees);
  document["decisions"] = compressDecisions(result.decisions, *result.space);
  document["origins"] = originsJson(request.pins, graph);
  document["prediction"] = predictionJson(result, cluster);
  document["search"] = {
      {"exhaustive", result.exhaustive},
      {"complete", result.isComplete},
      {"plans_priced", result.plansPriced},
      {"bound_seconds", seconds(result.boundPicoseconds)},
      {"gap",
       rounded(1 - static_cast<double>(result.boundPicoseconds) /
                       static_cast<double>(result.price.stepPicoseconds))}};
  document["alternatives"] = Json::array();
  for (const Alternative &alternative : result.alternatives) {
    Json entry = degreesJson(alternative.degrees);
    if (alternative.stepPicoseconds > 0) {
      entry["step_seconds"] = seconds(alternative.stepPicoseconds);
      entry["peak_tensor_bytes"] = alternative.peakBytes;
    }
    entry["rejected"] = alternative.reason;
    document["alternatives"].push_back(std::move(entry));
  }
  document["diagnostics"] = result.remarks;
  return plan;
}

} // namespace monarch::planner
