//===- ExplainPlan.cpp - why this plan of our own, why not that one -------===//
#include "planner/ExplainPlan.h"

#include "planner/cluster/Units.h"
#include "planner/resolve/Resolve.h"

#include <algorithm>
#include <fmt/format.h>

namespace monarch::planner {

namespace {

constexpr double Picosecond = 1e-12;

const StageTime &busiest(const Price &price) {
  return *std::max_element(price.stages.begin(), price.stages.end(),
                           [](const StageTime &a, const StageTime &b) {
                             return a.busyPicoseconds() < b.busyPicoseconds();
                           });
}

std::string signedPercent(int64_t part, int64_t whole) {
  return fmt::format("{:+.1f} %", 100.0 * static_cast<double>(part) /
                                      static_cast<double>(whole));
}

/// "+3.1 %: backward +2.0 %, idle +1.1 %", in shares of `best`.
std::string difference(const Price &other, const Price &best) {
  const int64_t whole = best.stepPicoseconds;
  std::string text = signedPercent(other.stepPicoseconds - whole, whole);
  const StageTime &a = busiest(other), &b = busiest(best);
  std::vector<std::pair<const char *, int64_t>> parts = {
      {"forward", a.forwardPicoseconds - b.forwardPicoseconds},
      {"backward", a.backwardPicoseconds - b.backwardPicoseconds},
      {"update", a.stepPicoseconds - b.stepPicoseconds},
      {"idle", a.idlePicoseconds - b.idlePicoseconds}};
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto &x, const auto &y) {
                     return std::abs(x.second) > std::abs(y.second);
                   });
  const char *separator = ": ";
  for (const auto &[name, longer] : parts)
    if (std::abs(longer) * 500 > whole) {
      text +=
          fmt::format("{}{} {}", separator, name, signedPercent(longer, whole));
      separator = ", ";
    }
  return text + fmt::format("; collectives {}",
                            signedPercent(a.collectivePicoseconds -
                                              b.collectivePicoseconds,
                                          whole));
}

std::string nameOf(const Degrees &degrees) {
  return fmt::format("dp {}, tp {}, pp {}, micro-batch {}", degrees.dp,
                     degrees.tp, degrees.pp, degrees.unitRows);
}

Pins merged(Pins pins, const Pins &instead) {
  auto take = [](auto &into, const auto &from) {
    if (from)
      into = from;
  };
  take(pins.dp, instead.dp);
  take(pins.tp, instead.tp);
  take(pins.pp, instead.pp);
  take(pins.microBatch, instead.microBatch);
  take(pins.schedule, instead.schedule);
  take(pins.masterWeights, instead.masterWeights);
  return pins;
}

void scale(int64_t &figure, int64_t tenths) {
  figure = std::max<int64_t>(1, figure / 10 * tenths);
}

void scaleLevels(Cluster &cluster, int64_t tenths, bool ofNode) {
  for (LinkLevel &level : cluster.levels)
    if ((level.size <= cluster.devicesPerNode) == ofNode)
      scale(level.bytesPerSecond, tenths);
}

} // namespace

Expected<PlanWhyNot> whyNot(const Graph &graph, const Cluster &cluster,
                            const PlanRequest &request,
                            const PlanResult &result,
                            const std::string &instead) {
  PlanRequest asked = request;
  Pins pins;
  PlanWhyNot answer;
  answer.pins = instead;
  if (auto error = addPins(instead, pins)) {
    if (error->code == ExitCode::Usage)
      return *error;
    answer.reason = error->what;
    answer.nearestLegal = error->fix;
    return answer;
  }
  asked.pins = merged(request.pins, pins);
  const auto other = makePlan(graph, cluster, asked);
  if (!other) {
    const Error &error = other.error();
    answer.reason = error.what;
    if (error.id != "MP3103" && error.id != "MP3105") {
      answer.nearestLegal = error.fix;
      return answer;
    }
    answer.verdict = Verdict::TooLarge;
    answer.reason += "; " + error.fix;
    return answer;
  }
  answer.stepPicoseconds = other->price.stepPicoseconds;
  if (other->degrees == result.degrees && other->price == result.price) {
    answer.verdict = Verdict::Chosen;
    answer.reason = "it is what was chosen";
    return answer;
  }
  answer.verdict = answer.stepPicoseconds < result.price.stepPicoseconds
                       ? Verdict::Faster
                       : Verdict::Slower;
  answer.reason =
      nameOf(other->degrees) + ": " + difference(other->price, result.price);
  return answer;
}

Expected<std::vector<PlanSensitivity>> sensitivity(const PlanResult &result,
                                                   const Cluster &cluster) {
  struct Figure {
    const char *name;
    void (*scaleIt)(Cluster &cluster, int64_t tenths);
  };
  constexpr Figure Figures[] = {
      {"link bandwidth",
       [](Cluster &c, int64_t tenths) { scaleLevels(c, tenths, true); }},
      {"network bandwidth",
       [](Cluster &c, int64_t tenths) { scaleLevels(c, tenths, false); }},
      {"memory",
       [](Cluster &c, int64_t tenths) { scale(c.device.memoryBytes, tenths); }},
      {"memory bandwidth",
       [](Cluster &c, int64_t tenths) {
         scale(c.device.memoryBytesPerSecond, tenths);
       }},
      {"FLOPs", [](Cluster &c, int64_t tenths) {
         for (auto &[type, rate] : c.device.peakFlopsPerSecond)
           scale(rate, tenths);
       }}};
  const auto resolved = resolve(*result.space, result.decisions);
  if (!resolved)
    return resolved.error();
  std::vector<PlanSensitivity> list;
  for (const Figure &figure : Figures)
    for (int64_t tenths : {8, 12}) {
      Cluster other = cluster;
      figure.scaleIt(other, tenths);
      const auto priced = price(resolved->program, other);
      if (!priced)
        return priced.error();
      list.push_back({figure.name, tenths, priced->stepPicoseconds,
                      result.peakBytes <= other.device.usableBytes()});
    }
  return list;
}

Binding firstBinding(const PlanResult &result,
                     const std::vector<PlanSensitivity> &list) {
  const int64_t now = result.price.stepPicoseconds;
  for (const Alternative &other : result.alternatives)
    if (other.stepPicoseconds > 0 && other.stepPicoseconds < now)
      return {"memory",
              fmt::format("{} would take {} and {}", nameOf(other.degrees),
                          formatPicoseconds(other.stepPicoseconds),
                          other.reason)};
  const PlanSensitivity *most = nullptr;
  for (const PlanSensitivity &entry : list)
    if (entry.stepPicoseconds < (most ? most->stepPicoseconds : now))
      most = &entry;
  if (!most)
    return {"launches", "no figure of the machine shortens the step: calls "
                        "take as long as the host needs to start them"};
  return {most->what,
          fmt::format("of all figures it shortens the step most: "
                      "x 1.2 gives {}",
                      signedPercent(most->stepPicoseconds - now, now))};
}

Json toJson(const PlanWhyNot &answer) {
  Json json = {{"pins", answer.pins},
               {"verdict", toString(answer.verdict)},
               {"reason", answer.reason}};
  if (!answer.nearestLegal.empty())
    json["nearest_legal"] = answer.nearestLegal;
  if (answer.stepPicoseconds > 0)
    json["step_seconds"] =
        rounded(static_cast<double>(answer.stepPicoseconds) * Picosecond);
  return json;
}

Json toJson(const PlanSensitivity &entry) {
  return {{"what", entry.what},
          {"factor", static_cast<double>(entry.tenths) / 10},
          {"step_seconds",
           rounded(static_cast<double>(entry.stepPicoseconds) * Picosecond)},
          {"fits", entry.fits}};
}

std::string summarize(const PlanWhyNot &answer) {
  std::string text = fmt::format("not {}: {}: {}\n", answer.pins,
                                 toString(answer.verdict), answer.reason);
  if (!answer.nearestLegal.empty())
    text += fmt::format("    instead: {}\n", answer.nearestLegal);
  return text;
}

std::string summarize(const std::vector<PlanSensitivity> &list,
                      const PlanResult &result) {
  const int64_t now = result.price.stepPicoseconds;
  std::string text;
  for (const PlanSensitivity &entry : list)
    text += fmt::format(
        "{} x {}.{}: {}\n", entry.what, entry.tenths / 10, entry.tenths % 10,
        entry.fits ? signedPercent(entry.stepPicoseconds - now, now)
                   : "no longer fits");
  return text;
}

} // namespace monarch::planner
