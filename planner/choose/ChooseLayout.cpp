//===- ChooseLayout.cpp - the fastest layout that fits --------------------===//
#include "planner/choose/ChooseLayout.h"

#include "planner/choose/Compare.h"
#include "planner/choose/Infeasible.h"
#include "planner/choose/LayoutSearch.h"
#include "planner/choose/PinNames.h"

#include <algorithm>
#include <fmt/format.h>

namespace monarch::planner {

namespace {

std::vector<LayoutDecision> decisionsOf(const StepLayout &layout,
                                        const LayoutRequest &request,
                                        const LayoutSpace &space) {
  std::vector<LayoutDecision> list;
  const auto pinned = request.pins.entries();
  for (const auto &[name, value] : valuesOf(layout)) {
    LayoutDecision decision{name, value, DecidedBy::Planner};
    const bool isPinned =
        std::any_of(pinned.begin(), pinned.end(),
                    [&](const auto &pin) { return pin.first == name; });
    if (isPinned)
      decision.by = DecidedBy::User;
    else if (space.hasOneValue(name))
      decision.by = DecidedBy::Default;
    list.push_back(std::move(decision));
  }
  return list;
}

/// Counts of devices to fall back to, the largest first.
std::vector<int64_t> smallerCounts(const Machine &machine) {
  constexpr int64_t Most = 64;
  const int64_t node = machine.devicesPerNode;
  const int64_t step = machine.devices > node ? node : 1;
  std::vector<int64_t> counts;
  for (int64_t count = (machine.devices - 1) / step * step;
       count > 0 && static_cast<int64_t>(counts.size()) < Most; count -= step)
    counts.push_back(count);
  return counts;
}

Expected<LayoutChoice> choiceOf(const ModelWork &work, const Machine &machine,
                                const Target &target,
                                const LayoutRequest &request,
                                const LayoutSpace &space,
                                const LayoutSearch::Result &result) {
  LayoutChoice choice;
  auto priced = [&](const StepLayout &layout) {
    return estimate(work, machine, target, layout, request.headroom);
  };
  auto best = priced(result.families.front().layout);
  if (!best)
    return best.error();
  choice.best = std::move(*best);
  choice.boundSeconds = std::min(result.boundSeconds, choice.best.time.seconds);
  choice.candidates = result.candidates;
  choice.bounded = result.bounded;
  choice.priced = result.priced;
  choice.simulated = result.simulated;
  choice.overMemory = result.overMemory;
  choice.isComplete = result.isComplete;
  choice.decisions = decisionsOf(choice.best.layout, request, space);
  auto lost = [&](const StepLayout &layout) -> std::optional<LayoutFamily> {
    auto other = priced(layout);
    if (!other)
      return std::nullopt;
    std::string reason = whyLost(*other, choice.best);
    return LayoutFamily{std::move(*other), std::move(reason)};
  };
  const size_t count =
      std::min(result.families.size(), request.alternatives + 1);
  for (size_t index = 1; index < count; ++index)
    if (auto family = lost(result.families[index].layout))
      choice.alternatives.push_back(std::move(*family));
  if (result.tooLarge && result.tooLarge->bound < choice.best.time.seconds) {
    auto family = lost(result.tooLarge->layout);
    if (family && family->best.time.seconds < choice.best.time.seconds &&
        !family->best.fits)
      choice.fasterButTooLarge = std::move(family);
  }
  return choice;
}

} // namespace

Expected<LayoutChoice> chooseLayout(const ModelWork &work,
                                    const Machine &machine,
                                    const Target &target,
                                    const LayoutRequest &request) {
  LayoutSearch search(work, machine, target, request);
  const LayoutSearch::Result result = search.run();
  if (!result.families.empty())
    return choiceOf(work, machine, target, request, search.space(), result);
  if (!result.isComplete)
    return Error{"MP3312", ExitCode::Limit,
                 "ended before any layout that fits was found", "",
                 "let the search run longer"};
  if (!request.pins.entries().empty())
    return whyPinsConflict(work, machine, target, request, result);
  // A batch or heads that these devices cannot share: leave some idle.
  if (search.space().degrees().empty())
    for (int64_t count : smallerCounts(machine)) {
      Machine smaller = machine;
      smaller.devices = count;
      LayoutSearch fewer(work, smaller, target, request);
      const LayoutSearch::Result found = fewer.run();
      if (found.families.empty())
        continue;
      auto choice =
          choiceOf(work, smaller, target, request, fewer.space(), found);
      if (!choice)
        return choice;
      choice->idleDevices = machine.devices - count;
      choice->best.remarks.push_back(
          fmt::format("{} of {} devices stay idle: no layout uses all",
                      choice->idleDevices, machine.devices));
      return choice;
    }
  return whyNothingFits(work, machine, target, request, result);
}

std::string summarize(const LayoutChoice &choice, const Machine &machine,
                      const Target &target) {
  std::string text = summarize(choice.best, machine, target);
  text += fmt::format("gap       {:.2f} % at most: no layout that fits is "
                      "faster than {:.4g} s ({} bounded, {} priced, {} "
                      "simulated, {} too large){}\n",
                      100 * choice.gap(), choice.boundSeconds, choice.bounded,
                      choice.priced, choice.simulated, choice.overMemory,
                      choice.isComplete ? "" : "; ended early");
  for (const LayoutFamily &family : choice.alternatives)
    text += fmt::format("not       {}: {}\n", shortName(family.best.layout),
                        family.reason);
  if (choice.fasterButTooLarge)
    text += fmt::format("too large {}: {}\n",
                        shortName(choice.fasterButTooLarge->best.layout),
                        choice.fasterButTooLarge->reason);
  return text;
}

Json toJson(const LayoutChoice &choice, const Machine &machine,
            const Target &target) {
  Json json = toJson(choice.best, machine, target);
  json["bound_seconds"] = rounded(choice.boundSeconds);
  json["gap"] = rounded(choice.gap());
  json["complete"] = choice.isComplete;
  json["idle_devices"] = choice.idleDevices;
  json["counts"] = {{"bounded", choice.bounded},
                    {"priced", choice.priced},
                    {"simulated", choice.simulated},
                    {"over_memory", choice.overMemory}};
  auto family = [](const LayoutFamily &entry) {
    Json other;
    other["layout"] = layoutJson(entry.best.layout);
    other["step_seconds"] = rounded(entry.best.time.seconds);
    other["reason"] = entry.reason;
    return other;
  };
  json["alternatives"] = Json::array();
  for (const LayoutFamily &entry : choice.alternatives)
    json["alternatives"].push_back(family(entry));
  if (choice.fasterButTooLarge)
    json["faster_but_too_large"] = family(*choice.fasterButTooLarge);
  constexpr const char *By[] = {"user", "planner", "default"};
  json["decisions"] = Json::array();
  for (const LayoutDecision &decision : choice.decisions)
    json["decisions"].push_back({{"name", decision.name},
                                 {"value", decision.value},
                                 {"by", By[static_cast<size_t>(decision.by)]}});
  return json;
}

} // namespace monarch::planner
