//===- Compare.cpp - one layout against another ---------------------------===//
#include "planner/choose/Compare.h"

#include "planner/choose/PinNames.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace monarch::planner {

static std::string signedSeconds(double value) {
  return std::abs(value) < 1 ? fmt::format("{:+.1f} ms", value * 1e3)
                             : fmt::format("{:+.2f} s", value);
}

std::string shortName(const StepLayout &layout) {
  std::vector<std::string> parts;
  auto add = [&](const char *name, int64_t value, int64_t usual) {
    if (value != usual)
      parts.push_back(fmt::format("{} {}", name, value));
  };
  add("tp", layout.tp, 1);
  add("pp", layout.pp, 1);
  add("dp", layout.dp, 1);
  add("cp", layout.cp, 1);
  add("ep", layout.ep, 1);
  add("vpp", layout.chunks, 1);
  add("micro-batch", layout.microBatch, 0);
  add("zero", static_cast<int64_t>(layout.sharding), 0);
  add("shards", layout.shardGroup, 0);
  if (layout.isSequenceParallel)
    parts.push_back("sp");
  if (layout.offloadsOptimizer)
    parts.push_back("optimizer on the host");
  if (layout.schedule != Schedule::OneForwardOneBackward)
    parts.push_back(nameOf(layout.schedule));
  if (layout.recompute != Recompute::None)
    parts.push_back(nameOf(layout.recompute) + " recompute");
  if (!layout.stageLayers.empty())
    parts.push_back(
        fmt::format("layers {}", fmt::join(layout.stageLayers, ":")));
  return fmt::format("{}", fmt::join(parts, ", "));
}

Json layoutJson(const StepLayout &layout) {
  Json json;
  for (const auto &[name, value] : valuesOf(layout))
    json[name] = value;
  return json;
}

std::vector<std::pair<std::string, double>> partsOf(const StepTime &time) {
  return {{"compute", time.stage - time.exchange - time.sends},
          {"collectives inside layers", time.exchange},
          {"sends between stages", time.sends},
          {"pipeline bubble", time.bubble},
          {"reduction and gathering of parameters", time.data},
          {"optimizer", time.optimizer}};
}

std::string whyLost(const Estimate &other, const Estimate &best) {
  constexpr double GiB = 1024.0 * 1024 * 1024;
  const double longer = other.time.seconds - best.time.seconds;
  std::string text;
  if (!other.fits)
    text = fmt::format("needs {:.1f} GiB of {:.1f} on stage {}, {:.1f} too "
                       "many; ",
                       other.memory.total / GiB, other.usableBytes / GiB,
                       other.memory.stage,
                       (other.memory.total - other.usableBytes) / GiB);
  text += fmt::format("{} ({:+.1f} %)", signedSeconds(longer),
                      100 * longer / best.time.seconds);
  std::vector<std::pair<std::string, double>> parts = partsOf(other.time);
  const auto own = partsOf(best.time);
  for (size_t index = 0; index < parts.size(); ++index)
    parts[index].second -= own[index].second;
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto &a, const auto &b) {
                     return std::abs(a.second) > std::abs(b.second);
                   });
  // The parts that make the difference, and what they save elsewhere.
  constexpr size_t Most = 3;
  constexpr double Worth = 0.002;
  const char *separator = ": ";
  for (size_t index = 0; index < Most; ++index) {
    if (std::abs(parts[index].second) < Worth * best.time.seconds)
      break;
    text += fmt::format("{}{} {}", separator, parts[index].first,
                        signedSeconds(parts[index].second));
    separator = ", ";
  }
  return text;
}

} // namespace monarch::planner
