//===- Pins.cpp - what a user has decided about a layout ------------------===//
#include "planner/choose/PinNames.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace monarch::planner {

namespace {

template <typename T> struct Word {
  const char *text;
  T value;
};
constexpr Word<Recompute> RecomputeWords[] = {
    {"none", Recompute::None},
    {"selective", Recompute::CoreAttention},
    {"per_op", Recompute::PerOp},
    {"full", Recompute::Full}};
constexpr Word<Schedule> ScheduleWords[] = {
    {"1f1b", Schedule::OneForwardOneBackward},
    {"zb1", Schedule::ZeroBubble1},
    {"zb2", Schedule::ZeroBubble2},
    {"gpipe", Schedule::GPipe},
    {"zbv", Schedule::ZeroBubbleV},
    {"vhalf", Schedule::VHalf},
    {"zbh1", Schedule::ZeroBubble1}};
constexpr Word<bool> SwitchWords[] = {{"off", false}, {"on", true}};

template <typename T, size_t N>
const char *wordOf(const Word<T> (&words)[N], T value) {
  for (const Word<T> &word : words)
    if (word.value == value)
      return word.text;
  return "";
}

template <typename T, size_t N>
bool readWord(const Word<T> (&words)[N], std::string_view text,
              std::optional<T> &into) {
  for (const Word<T> &word : words)
    if (text == word.text) {
      into = word.value;
      return true;
    }
  return false;
}

bool readCount(std::string_view text, int64_t least, int64_t &into) {
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), into);
  return error == std::errc() && end == text.data() + text.size() &&
         into >= least;
}

bool readCount(std::string_view text, int64_t least,
               std::optional<int64_t> &into) {
  int64_t value = 0;
  if (!readCount(text, least, value))
    return false;
  into = value;
  return true;
}

/// One pin; false: no such name or value.
bool readPin(std::string_view name, std::string_view value, LayoutPins &pins) {
  const std::pair<std::string_view, std::optional<int64_t> LayoutPins::*>
      counts[] = {{"dp", &LayoutPins::dp},
                  {"tp", &LayoutPins::tp},
                  {"pp", &LayoutPins::pp},
                  {"cp", &LayoutPins::cp},
                  {"ep", &LayoutPins::ep},
                  {"vpp", &LayoutPins::chunks},
                  {"chunks", &LayoutPins::chunks},
                  {"micro_batch", &LayoutPins::microBatch},
                  {"dp_shard", &LayoutPins::shardGroup}};
  for (auto [known, member] : counts)
    if (name == known)
      return readCount(value, name == "dp_shard" ? 0 : 1, pins.*member);
  if (name == "zero") {
    int64_t level = 0;
    if (!readCount(value, 0, level) || level > 3)
      return false;
    pins.sharding = static_cast<Sharding>(level);
    return true;
  }
  if (name == "recompute")
    return readWord(RecomputeWords, value, pins.recompute);
  if (name == "schedule")
    return readWord(ScheduleWords, value, pins.schedule);
  if (name == "sp")
    return readWord(SwitchWords, value, pins.isSequenceParallel);
  if (name == "offload")
    return readWord(SwitchWords, value, pins.offloadsOptimizer);
  if (name != "layers")
    return false;
  while (true) {
    const size_t end = std::min(value.find(':'), value.size());
    int64_t count = 0;
    if (!readCount(value.substr(0, end), 0, count))
      return false;
    pins.stageLayers.push_back(count);
    if (end == value.size())
      return true;
    value.remove_prefix(end + 1);
  }
}

} // namespace

std::string nameOf(Recompute mode) { return wordOf(RecomputeWords, mode); }
std::string nameOf(Schedule schedule) {
  return wordOf(ScheduleWords, schedule);
}

Expected<LayoutPins> readLayoutPins(std::string_view text) {
  LayoutPins pins;
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    const std::string_view entry = text.substr(0, end);
    const size_t equals = std::min(entry.find('='), entry.size());
    if (equals == entry.size() ||
        !readPin(entry.substr(0, equals), entry.substr(equals + 1), pins))
      return Error{"MP3304", ExitCode::Usage,
                   fmt::format("\"{}\" is no pin", entry), "",
                   "dp, tp, pp, cp, ep, vpp, micro_batch, dp_shard: counts; "
                   "zero: 0 to 3; recompute: none, selective, per_op, full; "
                   "schedule: 1f1b, gpipe, zb1 (zbh1), zb2, zbv, vhalf; sp, "
                   "offload: on, off; "
                   "layers: as 13:13:6"};
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return pins;
}

std::vector<std::pair<std::string, std::string>> LayoutPins::entries() const {
  std::vector<std::pair<std::string, std::string>> list;
  auto addCount = [&](const char *name, const std::optional<int64_t> &value) {
    if (value)
      list.emplace_back(name, std::to_string(*value));
  };
  addCount("dp", dp);
  addCount("tp", tp);
  addCount("pp", pp);
  addCount("cp", cp);
  addCount("ep", ep);
  addCount("vpp", chunks);
  addCount("micro_batch", microBatch);
  if (sharding)
    list.emplace_back("zero", std::to_string(static_cast<int>(*sharding)));
  addCount("dp_shard", shardGroup);
  if (recompute)
    list.emplace_back("recompute", nameOf(*recompute));
  if (schedule)
    list.emplace_back("schedule", nameOf(*schedule));
  if (isSequenceParallel)
    list.emplace_back("sp", wordOf(SwitchWords, *isSequenceParallel));
  if (offloadsOptimizer)
    list.emplace_back("offload", wordOf(SwitchWords, *offloadsOptimizer));
  if (!stageLayers.empty())
    list.emplace_back("layers", fmt::format("{}", fmt::join(stageLayers, ":")));
  return list;
}

std::vector<std::pair<std::string, std::string>>
valuesOf(const StepLayout &layout) {
  LayoutPins all;
  all.dp = layout.dp;
  all.tp = layout.tp;
  all.pp = layout.pp;
  all.cp = layout.cp;
  all.ep = layout.ep;
  all.chunks = layout.chunks;
  all.microBatch = layout.microBatch;
  all.sharding = layout.sharding;
  all.shardGroup =
      layout.shardGroup ? layout.shardGroup : layout.dp * layout.cp;
  all.recompute = layout.recompute;
  all.schedule = layout.schedule;
  all.isSequenceParallel = layout.isSequenceParallel;
  all.offloadsOptimizer = layout.offloadsOptimizer;
  all.stageLayers = layout.stageLayers;
  return all.entries();
}

LayoutPins withoutPin(const LayoutPins &pins, std::string_view name) {
  LayoutPins rest;
  for (const auto &[key, value] : pins.entries())
    if (key != name)
      readPin(key, value, rest);
  return rest;
}

} // namespace monarch::planner
