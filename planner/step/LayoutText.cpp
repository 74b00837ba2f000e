//===- LayoutText.cpp - layouts of a step in files ----------------------===//
#include "planner/step/LayoutText.h"

namespace monarch::planner {

namespace {

constexpr int64_t MostDevices = 1'000'000;

std::optional<Recompute> parseRecompute(std::string_view text) {
  for (Recompute kind : {Recompute::None, Recompute::CoreAttention,
                         Recompute::PerOp, Recompute::Full})
    if (text == toString(kind))
      return kind;
  return std::nullopt;
}

std::optional<Schedule> parseSchedule(std::string_view text) {
  for (Schedule kind : Schedules)
    if (text == toString(kind))
      return kind;
  return std::nullopt;
}

} // namespace

std::string_view toString(Recompute recompute) {
  switch (recompute) {
  case Recompute::None:
    return "none";
  case Recompute::CoreAttention:
    return "core_attention";
  case Recompute::PerOp:
    return "per_op";
  case Recompute::Full:
    return "full";
  }
  return "";
}

std::string_view toString(Schedule schedule) {
  switch (schedule) {
  case Schedule::OneForwardOneBackward:
    return "1f1b";
  case Schedule::ZeroBubble1:
    return "zb1";
  case Schedule::ZeroBubble2:
    return "zb2";
  case Schedule::GPipe:
    return "gpipe";
  case Schedule::ZeroBubbleV:
    return "zbv";
  case Schedule::VHalf:
    return "vhalf";
  }
  return "";
}

Json layoutToJson(const StepLayout &layout) {
  Json json;
  json["tp"] = layout.tp;
  json["pp"] = layout.pp;
  json["dp"] = layout.dp;
  json["cp"] = layout.cp;
  json["ep"] = layout.ep;
  json["chunks"] = layout.chunks;
  json["micro_batch"] = layout.microBatch;
  json["global_batch"] = layout.globalBatch;
  json["sequence_parallel"] = layout.isSequenceParallel;
  json["zero"] = static_cast<int64_t>(layout.sharding);
  json["shard_group"] = layout.shardGroup;
  if (layout.offloadsOptimizer)
    json["offload"] = true;
  json["recompute"] = toString(layout.recompute);
  json["recompute_mlp"] = layout.recomputesMlp;
  json["schedule"] = toString(layout.schedule);
  json["precision"] = layout.precision == Precision::Fp8 ? "fp8" : "half";
  json["stage_layers"] = layout.stageLayers;
  if (!layout.stageRecompute.empty()) {
    json["stage_recompute"] = Json::array();
    for (Recompute recompute : layout.stageRecompute)
      json["stage_recompute"].push_back(toString(recompute));
  }
  return json;
}

StepLayout readStepLayout(const JsonValue &json) {
  StepLayout layout;
  auto degree = [&](const char *key) {
    return json[key].integer(1, MostDevices);
  };
  layout.tp = degree("tp");
  layout.pp = degree("pp");
  layout.dp = degree("dp");
  layout.cp = degree("cp");
  layout.ep = degree("ep");
  layout.chunks = degree("chunks");
  layout.microBatch = degree("micro_batch");
  layout.globalBatch = json["global_batch"].integer(1, int64_t(1) << 40);
  layout.isSequenceParallel = json["sequence_parallel"].boolean();
  layout.sharding = static_cast<Sharding>(json["zero"].integer(0, 3));
  layout.shardGroup = json["shard_group"].integer(0, MostDevices);
  if (const auto offload = json.find("offload"))
    layout.offloadsOptimizer = offload->boolean();
  layout.recomputesMlp = json["recompute_mlp"].boolean();
  const auto recompute = parseRecompute(json["recompute"].string());
  if (!recompute)
    json["recompute"].fail("is no way to recompute");
  layout.recompute = recompute.value_or(Recompute::None);
  const auto schedule = parseSchedule(json["schedule"].string());
  if (!schedule)
    json["schedule"].fail("is no schedule");
  layout.schedule = schedule.value_or(Schedule::OneForwardOneBackward);
  const std::string precision = json["precision"].string();
  if (precision != "fp8" && precision != "half")
    json["precision"].fail("must be \"half\" or \"fp8\"");
  layout.precision = precision == "fp8" ? Precision::Fp8 : Precision::Half;
  layout.stageLayers = json["stage_layers"].integers();
  const size_t stages = layout.stageLayers.size();
  bool isCount = stages == 0 || stages == static_cast<size_t>(layout.pp);
  for (int64_t layers : layout.stageLayers)
    isCount &= layers >= 0 && layers <= MostDevices;
  if (!isCount)
    json["stage_layers"].fail("must give the layers of each stage");
  if (const auto list = json.find("stage_recompute")) {
    for (const JsonValue &entry :
         list->elements(static_cast<size_t>(layout.pp))) {
      const auto own = parseRecompute(entry.string());
      if (!own)
        entry.fail("is no way to recompute");
      layout.stageRecompute.push_back(own.value_or(Recompute::None));
    }
  }
  return layout;
}

} // namespace monarch::planner
