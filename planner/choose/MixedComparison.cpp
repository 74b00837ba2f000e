//===- MixedComparison.cpp - what a part of a mixed cluster is worth ------===//
#include "planner/choose/MixedDevices.h"

#include "planner/step/LayoutText.h"

#include <fmt/format.h>

namespace monarch::planner {

namespace {

std::string nameOf(const MixedComparison::Other &other,
                   const std::vector<Machine> &parts) {
  return other.without ? "without " + parts[*other.without].device.name
                       : "with every kind of device";
}

} // namespace

Expected<MixedComparison> compareMixed(const ModelWork &work,
                                       const std::vector<Machine> &parts,
                                       const Target &target,
                                       const LayoutRequest &request) {
  auto best = chooseMixedLayout(work, parts, target, request);
  if (!best)
    return best.error();
  MixedComparison comparison{std::move(*best), {}};
  auto add = [&](std::optional<size_t> without, const auto &choice) {
    comparison.others.push_back({without, choice ? choice->time.seconds : 0});
  };
  add(std::nullopt, chooseMixedLayout(work, parts, target, request, true));
  for (size_t part = 0; part < parts.size(); ++part) {
    std::vector<Machine> rest = parts;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(part));
    add(part, chooseMixedLayout(work, rest, target, request));
  }
  return comparison;
}

std::string summarize(const MixedComparison &comparison,
                      const std::vector<Machine> &parts) {
  const MixedChoice &best = comparison.best;
  std::string text = summarize(best, parts);
  for (const MixedComparison::Other &other : comparison.others)
    text += other.seconds == 0
                ? fmt::format("{}: does not fit\n", nameOf(other, parts))
                : fmt::format("{}: {:.4g} s ({:+.1f} %)\n",
                              nameOf(other, parts), other.seconds,
                              100 * (other.seconds / best.time.seconds - 1));
  for (const StageRun &run : best.runs)
    if (run.stages == 0)
      text += fmt::format("note      leave {} out: the rest alone is faster\n",
                          parts[run.part].device.name);
  return text;
}

Json toJson(const MixedComparison &comparison,
            const std::vector<Machine> &parts) {
  const MixedChoice &best = comparison.best;
  Json json;
  json["layout"] = layoutToJson(best.layout);
  json["runs"] = Json::array();
  for (const StageRun &run : best.runs)
    json["runs"].push_back({{"device", parts[run.part].device.name},
                            {"stages", run.stages},
                            {"idle_devices", run.idle}});
  json["step_seconds"] = rounded(best.time.seconds);
  json["bound_seconds"] = rounded(best.boundSeconds);
  json["memory_bytes"] = {{"stage", best.memory.stage},
                          {"total", rounded(best.memory.total)},
                          {"usable", rounded(best.usableBytes)}};
  json["others"] = Json::array();
  for (const MixedComparison::Other &other : comparison.others) {
    Json entry;
    entry["what"] = nameOf(other, parts);
    entry["fits"] = other.seconds > 0;
    if (other.seconds > 0)
      entry["step_seconds"] = rounded(other.seconds);
    json["others"].push_back(std::move(entry));
  }
  return json;
}

} // namespace monarch::planner
