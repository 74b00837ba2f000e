//===- LayoutText.cpp - layouts of a step in files and on the command line ===//
#include "planner/step/LayoutText.h"

#include <algorithm>
#include <fmt/format.h>

namespace monarch::planner {

namespace {

constexpr int64_t MostDevices = 1'000'000;

Error refused(std::string what, std::string fix) {
  return Error{"MP3101", ExitCode::Usage, std::move(what), "--fix",
               std::move(fix)};
}

std::optional<int64_t> wholeNumber(std::string_view text) {
  if (text.empty() || text.size() > 7 ||
      text.find_first_not_of("0123456789") != std::string_view::npos)
    return std::nullopt;
  return std::stoll(std::string(text));
}

std::optional<Recompute> parseRecompute(std::string_view text) {
  for (Recompute kind : {Recompute::None, Recompute::CoreAttention,
                         Recompute::PerOp, Recompute::Full})
    if (text == toString(kind))
      return kind;
  // Which of the two the target means is known later.
  if (text == "selective")
    return Recompute::CoreAttention;
  return std::nullopt;
}

std::optional<Schedule> parseSchedule(std::string_view text) {
  for (Schedule kind : {Schedule::OneForwardOneBackward, Schedule::ZeroBubble1,
                        Schedule::ZeroBubble2})
    if (text == toString(kind))
      return kind;
  return std::nullopt;
}

struct NumberPin {
  std::string_view key;
  std::optional<int64_t> FixedLayout::*member;
  int64_t low, high;
};
constexpr NumberPin NumberPins[] = {
    {"dp", &FixedLayout::dp, 1, MostDevices},
    {"tp", &FixedLayout::tp, 1, MostDevices},
    {"sp", &FixedLayout::sp, 1, MostDevices},
    {"cp", &FixedLayout::cp, 1, MostDevices},
    {"ep", &FixedLayout::ep, 1, MostDevices},
    {"pp", &FixedLayout::pp, 1, MostDevices},
    {"vpp", &FixedLayout::vpp, 1, MostDevices},
    {"zero", &FixedLayout::zero, 0, 3},
    {"dp_shard", &FixedLayout::dpShard, 1, MostDevices},
    {"micro_batch", &FixedLayout::microBatch, 1, MostDevices}};

std::optional<Error> setNumber(const NumberPin &pin, std::string_view text,
                               FixedLayout &pins) {
  const std::optional<int64_t> value = wholeNumber(text);
  if (!value || *value < pin.low || *value > pin.high)
    return refused(fmt::format("{}={} is not a number from {} to {}", pin.key,
                               text, pin.low, pin.high),
                   fmt::format("write {}=N", pin.key));
  std::optional<int64_t> &member = pins.*pin.member;
  if (member && *member != *value)
    return refused(fmt::format("{} is fixed twice, to {} and {}", pin.key,
                               *member, *value),
                   "fix it once");
  member = value;
  return std::nullopt;
}

std::optional<Error> addPin(std::string_view key, std::string_view text,
                            FixedLayout &pins) {
  for (const NumberPin &pin : NumberPins)
    if (key == pin.key)
      return setNumber(pin, text, pins);
  if (key == "recompute") {
    const auto kind = parseRecompute(text);
    if (!kind || (pins.recompute && *pins.recompute != *kind))
      return refused(fmt::format("recompute={} is no way to recompute, or a "
                                 "second one",
                                 text),
                     "write recompute=none, selective or full, once");
    pins.recompute = kind;
    return std::nullopt;
  }
  if (key == "schedule") {
    const bool isInterleaved = text == "interleaved1f1b";
    const auto kind = isInterleaved
                          ? std::optional(Schedule::OneForwardOneBackward)
                          : parseSchedule(text);
    if (!kind || (pins.schedule && *pins.schedule != *kind))
      return refused(
          fmt::format("schedule={} is none of this target's, or a second one",
                      text),
          "write schedule=1f1b, interleaved1f1b, zb1 or zb2, once");
    pins.schedule = kind;
    pins.isInterleaved |= isInterleaved;
    return std::nullopt;
  }
  return refused(fmt::format("\"{}\" cannot be fixed", key),
                 "keys are dp, tp, sp, cp, ep, pp, vpp, zero, dp_shard, "
                 "micro_batch, recompute, schedule");
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
  json["recompute"] = toString(layout.recompute);
  json["recompute_mlp"] = layout.recomputesMlp;
  json["schedule"] = toString(layout.schedule);
  json["precision"] = layout.precision == Precision::Fp8 ? "fp8" : "half";
  json["stage_layers"] = layout.stageLayers;
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
  return layout;
}

std::optional<Error> addFixedFields(std::string_view text, FixedLayout &pins) {
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view item = text.substr(begin, end - begin);
    begin = end + 1;
    const size_t equals = item.find('=');
    if (equals == std::string_view::npos)
      return refused(fmt::format("\"{}\" is not of the form key=value", item),
                     "write as --fix dp=2,tp=2");
    if (auto error =
            addPin(item.substr(0, equals), item.substr(equals + 1), pins))
      return error;
  }
  return std::nullopt;
}

Json fixedJson(const FixedLayout &pins) {
  Json json = Json::object();
  for (const NumberPin &pin : NumberPins)
    if (pins.*pin.member)
      json[std::string(pin.key)] = *(pins.*pin.member);
  if (pins.recompute)
    json["recompute"] = toString(*pins.recompute);
  if (pins.schedule)
    json["schedule"] =
        pins.isInterleaved ? "interleaved1f1b" : toString(*pins.schedule);
  return json;
}

StepLayout pinnedLayout(const FixedLayout &pins, const Target &target,
                        const Machine &machine, int64_t globalBatch) {
  StepLayout layout;
  layout.tp = pins.tp.value_or(1);
  layout.pp = pins.pp.value_or(1);
  layout.cp = pins.cp.value_or(1);
  layout.ep = pins.ep.value_or(1);
  layout.chunks = pins.vpp.value_or(1);
  const int64_t others = layout.tp * layout.pp * layout.cp;
  layout.dp = pins.dp.value_or(std::max<int64_t>(1, machine.devices / others));
  layout.globalBatch = globalBatch;
  layout.microBatch = pins.microBatch.value_or(1);
  layout.isSequenceParallel =
      pins.sp ? *pins.sp > 1
              : target.defaultsToSequenceParallel && layout.tp > 1;
  layout.sharding =
      pins.zero ? static_cast<Sharding>(*pins.zero) : target.maxSharding;
  layout.shardGroup = pins.dpShard.value_or(0);
  layout.recompute = pins.recompute.value_or(Recompute::None);
  // A compiler's selective recompute keeps every second product.
  if (layout.recompute == Recompute::CoreAttention && target.isFullySharded)
    layout.recompute = Recompute::PerOp;
  layout.schedule = pins.schedule.value_or(Schedule::OneForwardOneBackward);
  return layout;
}

} // namespace monarch::planner
