//===- Summary.cpp - a plan on one page -----------------------------------===//
#include "planner/Planner.h"
#include "planner/cluster/Units.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace monarch::planner {

namespace {

constexpr size_t AlternativesShown = 5;
constexpr size_t StagesShown = 12;

std::string share(int64_t part, int64_t whole) {
  return whole == 0
             ? "0 %"
             : fmt::format("{:.0f} %", 100.0 * static_cast<double>(part) /
                                           static_cast<double>(whole));
}

/// "transformer.h.0 .. transformer.h.5": modules of a stage's first and last
/// forward op.
std::string modulesOf(const PlanResult &result, int stage) {
  const Graph &graph = *result.graph;
  std::string first, last;
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const Op &op = graph.ops[i];
    if (op.phase != Phase::Forward || result.decisions.stage[i] != stage ||
        result.space->isCloned(static_cast<OpId>(i)))
      continue;
    if (first.empty())
      first = op.module;
    last = op.module;
  }
  return first == last ? first : first + " .. " + last;
}

std::string stageTable(const PlanResult &result) {
  std::string text =
      fmt::format("{:>5} {:>10} {:>10} {:>10} {:>10} {:>6}  {}\n", "stage",
                  "params", "grads", "optimizer", "other", "busy", "modules");
  size_t count = result.price.stages.size();
  for (size_t s = 0; s < std::min(count, StagesShown); ++s) {
    const MemoryParts &memory = result.memory[s];
    text += fmt::format(
        "{:>5} {:>10} {:>10} {:>10} {:>10} {:>6}  {}\n", s,
        formatBytes(memory.parameterBytes), formatBytes(memory.gradientBytes),
        formatBytes(memory.optimizerBytes), formatBytes(memory.otherBytes),
        share(result.price.stages[s].busyPicoseconds(),
              result.price.stepPicoseconds),
        modulesOf(result, static_cast<int>(s)));
  }
  if (count > StagesShown)
    text += fmt::format("      and {} more\n", count - StagesShown);
  return text;
}

std::string timeLine(const PlanResult &result) {
  const Price &price = result.price;
  auto slowest =
      std::max_element(price.stages.begin(), price.stages.end(),
                       [](const StageTime &a, const StageTime &b) {
                         return a.busyPicoseconds() < b.busyPicoseconds();
                       });
  return fmt::format(
      "step    {} predicted: forward {}, backward {}, update {}, idle {} of "
      "the busiest stage; collectives {} of it\n",
      formatPicoseconds(price.stepPicoseconds),
      share(slowest->forwardPicoseconds, price.stepPicoseconds),
      share(slowest->backwardPicoseconds, price.stepPicoseconds),
      share(slowest->stepPicoseconds, price.stepPicoseconds),
      share(slowest->idlePicoseconds, price.stepPicoseconds),
      share(slowest->collectivePicoseconds, price.stepPicoseconds));
}

} // namespace

std::string summarize(const PlanResult &result, const Cluster &cluster) {
  const Degrees &d = result.degrees;
  const Decisions &decisions = result.decisions;
  std::string mesh;
  for (const MeshAxis &axis : decisions.mesh.axes)
    mesh +=
        fmt::format("{}{}={}", mesh.empty() ? "" : " ", axis.name, axis.size);
  int64_t units = decisions.globalRows / decisions.unitRows;

  std::string text;
  text += fmt::format("cluster {}: {} x {}, {} each\n", cluster.name,
                      cluster.deviceCount(), cluster.device.name,
                      formatBytes(cluster.device.usableBytes()));
  text += fmt::format("world   {} = dp {} x tp {} x cp 1 x pp {}{}\n",
                      cluster.deviceCount(), d.dp, d.tp, d.pp,
                      mesh.empty() ? "" : "   (a stage: " + mesh + ")");
  text +=
      fmt::format("batch   {} rows = {} units of {}, {}, {}\n",
                  decisions.globalRows, units, decisions.unitRows,
                  toString(decisions.schedule), toString(decisions.optimizer));
  text += timeLine(result);
  text += fmt::format("memory  {} of {} at the peak\n",
                      formatBytes(result.peakBytes),
                      formatBytes(cluster.device.usableBytes()));
  text += "traffic";
  for (const auto &[kind, bytes] : result.traffic.bytes)
    if (bytes > 0)
      text += fmt::format(" {} {}", kind, formatBytes(bytes));
  text += " (all ranks, a step)\n\n";
  text += stageTable(result) + "\n";
  for (const std::string &remark : result.remarks)
    text += "note    " + remark + "\n";
  text += fmt::format(
      "gap     {} to the bound of this model of costs ({}), {} plans "
      "priced{}\n",
      share(result.price.stepPicoseconds - result.boundPicoseconds,
            result.price.stepPicoseconds),
      formatPicoseconds(result.boundPicoseconds), result.plansPriced,
      result.exhaustive ? ", all plans covered" : "");
  for (size_t i = 0;
       i < std::min(result.alternatives.size(), AlternativesShown); ++i) {
    const Alternative &other = result.alternatives[i];
    text += fmt::format("{} dp {} tp {} pp {} micro-batch {}: {}\n",
                        i == 0 ? "instead" : "       ", other.degrees.dp,
                        other.degrees.tp, other.degrees.pp,
                        other.degrees.unitRows, other.reason);
  }
  return text;
}

} // namespace monarch::planner
