//===- Explain.cpp - why this layout, why not that one --------------------===//
#include "planner/choose/Explain.h"

#include "planner/choose/Compare.h"
#include "planner/choose/Infeasible.h"
#include "planner/choose/PinNames.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>

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

constexpr double GiB = 1024.0 * 1024 * 1024;

/// "optimizer 31.2, activations 20.5, parameters 8.1 GiB": the largest first.
std::string peakParts(const StepMemory &memory) {
  std::vector<std::pair<const char *, double>> parts = {
      {"parameters", memory.parameters}, {"gradients", memory.gradients},
      {"optimizer", memory.optimizer},   {"activations", memory.activations},
      {"logits", memory.logits},         {"a layer made again", memory.layer},
      {"gathered", memory.gathered}};
  std::stable_sort(
      parts.begin(), parts.end(),
      [](const auto &a, const auto &b) { return a.second > b.second; });
  constexpr size_t Most = 3;
  std::vector<std::string> words;
  for (size_t index = 0; index < Most; ++index)
    words.push_back(fmt::format("{} {:.1f}", parts[index].first,
                                parts[index].second / GiB));
  return fmt::format("{} GiB", fmt::join(words, ", "));
}

/// Counts that a pin may have, the nearest to `asked` first, the smaller of
/// equals.
std::vector<int64_t> nearestCounts(std::string_view name, int64_t asked,
                                   const Machine &machine,
                                   const LayoutRequest &request) {
  constexpr int64_t MostChunks = 16, MostRows = 64;
  const int64_t whole = name == "micro_batch" ? request.globalBatch
                        : name == "vpp"       ? 0
                                              : machine.devices;
  const int64_t most =
      name == "vpp" ? MostChunks
                    : std::min(whole, name == "micro_batch" ? MostRows : whole);
  std::vector<int64_t> counts;
  for (int64_t count = 1; count <= most; ++count)
    if (count != asked && (whole == 0 || whole % count == 0))
      counts.push_back(count);
  auto distance = [&](int64_t count) {
    return std::abs(
        std::log(static_cast<double>(count) / static_cast<double>(asked)));
  };
  std::stable_sort(counts.begin(), counts.end(), [&](int64_t a, int64_t b) {
    return distance(a) < distance(b);
  });
  return counts;
}

std::string nearestLegal(const ModelWork &work, const Machine &machine,
                         const Target &target, const LayoutRequest &asked,
                         const LayoutPins &instead) {
  constexpr std::string_view Counts[] = {"dp", "tp",  "pp",         "cp",
                                         "ep", "vpp", "micro_batch"};
  std::string nearest;
  double least = std::numeric_limits<double>::infinity();
  for (const auto &[name, text] : instead.entries()) {
    if (std::find(std::begin(Counts), std::end(Counts), name) ==
        std::end(Counts))
      continue;
    const int64_t value = std::stoll(text);
    for (int64_t count : nearestCounts(name, value, machine, asked)) {
      const double change = std::abs(
          std::log(static_cast<double>(count) / static_cast<double>(value)));
      if (change >= least)
        break;
      const LayoutPins one = *readLayoutPins(fmt::format("{}={}", name, count));
      LayoutRequest other = asked;
      other.pins = merged(asked.pins, one);
      const auto found =
          LayoutSearch(work, machine, target, other).anyThatFits();
      if (found.families.empty() && !found.closest)
        continue;
      nearest = wordsOf(merged(instead, one));
      least = change;
      break;
    }
  }
  return nearest;
}

} // namespace

std::string_view toString(Verdict verdict) {
  constexpr std::string_view Names[] = {"illegal", "does not fit", "slower",
                                        "faster", "chosen"};
  return Names[static_cast<size_t>(verdict)];
}

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
    answer.nearestLegal = nearestLegal(work, machine, target, asked, instead);
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
  if (!priced->fits) {
    answer.verdict = Verdict::TooLarge;
    answer.reason += "; its peak: " + peakParts(priced->memory);
    return answer;
  }
  if (shortName(found->layout) == shortName(choice.best.layout)) {
    answer.verdict = Verdict::Chosen;
    answer.reason = "it is what was chosen";
  } else {
    answer.verdict = priced->time.seconds < choice.best.time.seconds
                         ? Verdict::Faster
                         : Verdict::Slower;
  }
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
    if (decision.name == "offload") {
      ask(decision.name, decision.value == "on" ? "off" : "on");
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

Binding firstBinding(const LayoutChoice &choice,
                     const std::vector<Sensitivity> &list) {
  if (choice.idleDevices > 0)
    return {"divisibility",
            fmt::format("{} devices stay idle: no layout uses them",
                        choice.idleDevices)};
  if (choice.fasterButTooLarge) {
    const Estimate &large = choice.fasterButTooLarge->best;
    return {"memory",
            fmt::format("{} would take {:.4g} s and needs {:.1f} GiB "
                        "more a device",
                        shortName(large.layout), large.time.seconds,
                        (large.memory.total - large.usableBytes) / GiB)};
  }
  const Sensitivity *most = nullptr;
  double least = choice.best.time.seconds;
  for (const Sensitivity &entry : list) {
    if (entry.factor < 1 || !entry.best || entry.best->time.seconds >= least)
      continue;
    most = &entry;
    least = entry.best->time.seconds;
  }
  if (!most)
    return {choice.best.binds, "no figure of the machine shortens the step"};
  return {most->what,
          fmt::format("of all figures it shortens the step most: x {} gives "
                      "{:+.1f} %; largest part of the step: {}",
                      most->factor,
                      100 * (least / choice.best.time.seconds - 1),
                      choice.best.binds)};
}

Json toJson(const WhyNot &answer) {
  Json json = {{"pins", answer.pins},
               {"verdict", toString(answer.verdict)},
               {"reason", answer.reason}};
  if (!answer.nearestLegal.empty())
    json["nearest_legal"] = answer.nearestLegal;
  if (answer.best) {
    json["layout"] = layoutJson(answer.best->layout);
    json["step_seconds"] = rounded(answer.best->time.seconds);
  }
  return json;
}

Json toJson(const Sensitivity &entry) {
  Json json = {{"what", entry.what},
               {"factor", entry.factor},
               {"step_seconds", rounded(entry.seconds)},
               {"fits", entry.fits}};
  if (entry.best)
    json["best"] = {{"layout", layoutJson(entry.best->layout)},
                    {"step_seconds", rounded(entry.best->time.seconds)}};
  return json;
}

std::string summarize(const std::vector<WhyNot> &answers) {
  std::string text;
  for (const WhyNot &answer : answers) {
    text += fmt::format("not {}: {}: {}\n", answer.pins,
                        toString(answer.verdict), answer.reason);
    if (!answer.nearestLegal.empty())
      text += fmt::format("    nearest legal: {}\n", answer.nearestLegal);
  }
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
