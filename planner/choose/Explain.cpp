//===- Explain.cpp - why this layout, why not that one --------------------===//
#include "planner/choose/Explain.h"

#include "planner/choose/Compare.h"
#include "planner/choose/Infeasible.h"
#include "planner/choose/PinNames.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace monarch::planner {

namespace {

std::string wordsOf(const LayoutPins &pins) {
  std::vector<std::string> words;
  for (const auto &[name, value] : pins.entries())
    words.push_back(fmt::format("{}={}", name, value));
  return fmt::format("{}", fmt::join(words, ","));
}

/// Pins of both; the second wins.
LayoutPins merged(const LayoutPins &first, const LayoutPins &second) {
  LayoutPins rest = first;
  for (const auto &[name, value] : second.entries())
    rest = withoutPin(rest, name);
  std::string words = wordsOf(rest);
  const std::string own = wordsOf(second);
  if (!words.empty() && !own.empty())
    words += ",";
  // Both parts came out of pins.
  return *readLayoutPins(words + own);
}

} // namespace

WhyNot whyNot(const ModelWork &work, const Machine &machine,
              const Target &target, const LayoutRequest &request,
              const LayoutChoice &choice, const LayoutPins &instead) {
  WhyNot answer;
  answer.pins = wordsOf(instead);
  LayoutRequest asked = request;
  asked.onProgress = nullptr;
  asked.alternatives = 0;
  asked.pins = merged(request.pins, instead);
  LayoutSearch search(work, machine, target, asked);
  const LayoutSearch::Result result = search.run();
  const LayoutSearch::Found *found = !result.families.empty()
                                         ? &result.families.front()
                                     : result.closest ? &*result.closest
                                                      : nullptr;
  if (!found) {
    answer.reason = violationsOf(work, machine, target, asked);
    return answer;
  }
  auto priced =
      estimate(work, machine, target, found->layout, request.headroom);
  if (!priced) {
    answer.reason = priced.error().what;
    return answer;
  }
  answer.reason = fmt::format("{}: {}", shortName(found->layout),
                              whyLost(*priced, choice.best));
  if (priced->fits)
    answer.best = std::move(*priced);
  return answer;
}

std::vector<WhyNot> whyThis(const ModelWork &work, const Machine &machine,
                            const Target &target, const LayoutRequest &request,
                            const LayoutChoice &choice) {
  std::vector<WhyNot> answers;
  auto ask = [&](const std::string &name, const std::string &value) {
    auto pins = readLayoutPins(fmt::format("{}={}", name, value));
    if (pins)
      answers.push_back(whyNot(work, machine, target, request, choice, *pins));
  };
  for (const LayoutDecision &decision : choice.decisions) {
    if (decision.by != DecidedBy::Planner)
      continue;
    if (decision.name == "recompute") {
      for (const char *mode : {"none", "full"})
        if (decision.value != mode)
          ask(decision.name, mode);
      continue;
    }
    if (decision.name == "sp") {
      if (choice.best.layout.tp > 1)
        ask(decision.name, decision.value == "on" ? "off" : "on");
      continue;
    }
    if (decision.name == "schedule" || decision.name == "layers" ||
        decision.name == "dp" || decision.name == "dp_shard")
      continue;
    const int64_t value = std::stoll(decision.value);
    if (decision.name == "zero") {
      ask(decision.name, value == 0 ? "1" : "0");
      continue;
    }
    if (value > 1)
      ask(decision.name, std::to_string(value / 2));
    ask(decision.name, std::to_string(value * 2));
  }
  return answers;
}

std::vector<Sensitivity>
sensitivity(const ModelWork &work, const Machine &machine, const Target &target,
            const LayoutRequest &request, const LayoutChoice &choice) {
  struct Figure {
    const char *name;
    void (*scale)(Machine &machine, double factor);
  };
  constexpr Figure Figures[] = {
      {"link bandwidth",
       [](Machine &m, double f) { m.device.linkBytesPerSecond *= f; }},
      {"network bandwidth",
       [](Machine &m, double f) { m.nodeNicBytesPerSecond *= f; }},
      {"memory", [](Machine &m, double f) { m.device.memoryBytes *= f; }},
      {"memory bandwidth",
       [](Machine &m, double f) { m.device.memoryBytesPerSecond *= f; }},
      {"FLOPs", [](Machine &m, double f) {
         m.device.ceilingFlops *= f;
         m.device.peakFlops *= f;
         m.device.fp8CeilingFlops *= f;
         m.device.fp8PeakFlops *= f;
         m.device.vectorFlops *= f;
       }}};
  LayoutRequest asked = request;
  asked.onProgress = nullptr;
  asked.alternatives = 0;
  std::vector<Sensitivity> list;
  for (const Figure &figure : Figures)
    for (double factor : {0.8, 1.2}) {
      Machine other = machine;
      other.devices = choice.best.layout.devices();
      figure.scale(other, factor);
      Sensitivity entry;
      entry.what = figure.name;
      entry.factor = factor;
      auto same =
          estimate(work, other, target, choice.best.layout, request.headroom);
      if (!same)
        continue;
      entry.seconds = same->time.seconds;
      entry.fits = same->fits;
      if (auto best = chooseLayout(work, other, target, asked))
        entry.best = std::move(best->best);
      list.push_back(std::move(entry));
    }
  return list;
}

std::string summarize(const std::vector<WhyNot> &answers) {
  std::string text;
  for (const WhyNot &answer : answers)
    text += fmt::format("not {}: {}\n", answer.pins, answer.reason);
  return text;
}

std::string summarize(const std::vector<Sensitivity> &list,
                      const LayoutChoice &choice) {
  const double now = choice.best.time.seconds;
  std::string text;
  for (const Sensitivity &entry : list) {
    text += fmt::format("{} x {}: ", entry.what, entry.factor);
    if (entry.fits)
      text += fmt::format("{:+.1f} %", 100 * (entry.seconds / now - 1));
    else
      text += "no longer fits";
    if (!entry.best)
      text += "; nothing fits";
    else if (shortName(entry.best->layout) != shortName(choice.best.layout))
      text += fmt::format("; then better {} ({:+.1f} %)",
                          shortName(entry.best->layout),
                          100 * (entry.best->time.seconds / now - 1));
    text += "\n";
  }
  return text;
}

} // namespace monarch::planner
