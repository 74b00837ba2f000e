//===- Summary.cpp - a plan on one page -----------------------------------===//
#include "planner/PlanFigures.h"
#include "planner/cluster/Units.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace monarch::planner {

namespace {

// Together with the fixed lines no more than a screen of 45.
constexpr size_t AlternativesShown = 5;
constexpr size_t StagesShown = 12;
constexpr size_t RemarksShown = 8;

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
    if (op.module.empty())
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
  const size_t count = result.price.stages.size();
  for (size_t s = 0; s < std::min(count, StagesShown); ++s) {
    const PeakMemory &memory = result.memory[s];
    const int64_t parameters = memory.of(MemoryUse::Parameters),
                  gradients = memory.of(MemoryUse::Gradients),
                  optimizer = memory.of(MemoryUse::Optimizer);
    text += fmt::format(
        "{:>5} {:>10} {:>10} {:>10} {:>10} {:>6}  {}\n", s,
        formatBytes(parameters), formatBytes(gradients), formatBytes(optimizer),
        formatBytes(memory.bytes - parameters - gradients - optimizer),
        share(result.price.stages[s].busyPicoseconds(),
              result.price.stepPicoseconds),
        modulesOf(result, static_cast<int>(s)));
  }
  if (count > StagesShown)
    text += fmt::format("      and {} more\n", count - StagesShown);
  return text;
}

std::string layoutLines(const PlanResult &result, const Cluster &cluster) {
  const Degrees &d = result.degrees;
  const Decisions &decisions = result.decisions;
  std::string mesh;
  for (const MeshAxis &axis : decisions.mesh.axes)
    mesh +=
        fmt::format("{}{}={}", mesh.empty() ? "" : " ", axis.name, axis.size);
  std::string text = fmt::format("cluster {}: {} x {}, {} each\n", cluster.name,
                                 cluster.deviceCount(), cluster.device.name,
                                 formatBytes(cluster.device.usableBytes()));
  text += fmt::format("world   {} = dp {} x tp {} x cp 1 x pp {}{}\n",
                      cluster.deviceCount(), d.dp, d.tp, d.pp,
                      mesh.empty() ? "" : "   (a stage: " + mesh + ")");
  return text +
         fmt::format("batch   {} rows = {} units of {}, {}, {}{}\n",
                     decisions.globalRows,
                     decisions.globalRows / decisions.unitRows,
                     decisions.unitRows, toString(decisions.schedule),
                     toString(decisions.optimizer),
                     decisions.masterWeights ? ", float32 master weights" : "");
}

std::string timeLines(const PlanResult &result, const PlanFigures &figures) {
  const Price &price = result.price;
  const StageTime &busiest = price.busiestStage();
  const StepParts parts = price.parts();
  auto ofStep = [&](int64_t part) {
    return share(part, price.stepPicoseconds);
  };
  auto scaled = [&](double factor) {
    return formatPicoseconds(static_cast<int64_t>(
        static_cast<double>(price.stepPicoseconds) * factor));
  };
  std::string text =
      fmt::format("step    {} predicted  (90 %: {} to {})\n",
                  formatPicoseconds(price.stepPicoseconds),
                  scaled(1 - figures.halfWidth), scaled(1 + figures.halfWidth));
  text += fmt::format(
      "        compute {}, collectives {}, sends {}, idle {}; "
      "forward {}, backward {}, update {}\n",
      ofStep(parts.computePicoseconds), ofStep(parts.collectivePicoseconds),
      ofStep(parts.sendPicoseconds), ofStep(parts.idlePicoseconds),
      ofStep(busiest.forwardPicoseconds), ofStep(busiest.backwardPicoseconds),
      ofStep(busiest.stepPicoseconds));
  const auto devices = static_cast<double>(
      result.degrees.dp * result.degrees.tp * result.degrees.pp);
  text += fmt::format("        {:.4g} rows/s", figures.rowsPerSecond);
  if (figures.tokensPerSecond > 0)
    text +=
        fmt::format(", {:.0f} tokens/s, {:.0f} a device",
                    figures.tokensPerSecond, figures.tokensPerSecond / devices);
  if (figures.modelFlopsShare > 0)
    text += fmt::format(", MFU {:.1f} % of {}", 100 * figures.modelFlopsShare,
                        toString(figures.peakType));
  return text + "\n";
}

std::string memoryLines(const PlanResult &result, const PlanFigures &figures,
                        const Device &device) {
  const PeakMemory &memory = result.memory[figures.fullestStage];
  std::string text = fmt::format(
      "memory  {} of {} on stage {}: fits\n       ", formatBytes(memory.bytes),
      formatBytes(device.usableBytes()), figures.fullestStage);
  for (size_t use = 0; use < MemoryUses; ++use) {
    // States on one line, what passes on the next.
    if (static_cast<MemoryUse>(use) == MemoryUse::Saved)
      text += "\n       ";
    if (memory.byUse[use] > 0)
      text += fmt::format(" {} {},", toString(static_cast<MemoryUse>(use)),
                          formatBytes(memory.byUse[use]));
  }
  return text + fmt::format(" free {}; context {} beside\n",
                            formatBytes(device.usableBytes() - memory.bytes),
                            formatBytes(device.reservedBytes));
}

std::string trafficLine(const Traffic &traffic) {
  std::string text;
  for (const auto &[kind, bytes] : traffic.bytes)
    if (bytes > 0)
      text += fmt::format(" {} {}", kind, formatBytes(bytes));
  return text.empty() ? "traffic none\n"
                      : "traffic" + text + " (all ranks, a step)\n";
}

std::string remarkLines(const std::vector<std::string> &remarks) {
  std::string text;
  for (size_t i = 0; i < std::min(remarks.size(), RemarksShown); ++i)
    text += "note    " + remarks[i] + "\n";
  if (remarks.size() > RemarksShown)
    text += fmt::format("note    {} more in the plan's diagnostics\n",
                        remarks.size() - RemarksShown);
  return text;
}

std::string alternativeLines(const PlanResult &result) {
  std::string text;
  size_t shown = 0;
  const Alternative *tooLarge = nullptr;
  for (const Alternative &other : result.alternatives) {
    const bool isFaster = other.stepPicoseconds > 0 &&
                          other.stepPicoseconds < result.price.stepPicoseconds;
    if (!other.fits && !tooLarge && isFaster)
      tooLarge = &other;
    else if (shown++ < AlternativesShown)
      text += fmt::format("not     dp {} tp {} pp {} micro-batch {}: {}\n",
                          other.degrees.dp, other.degrees.tp, other.degrees.pp,
                          other.degrees.unitRows, other.reason);
  }
  if (tooLarge)
    text += fmt::format("faster but too large: dp {} tp {} pp {} micro-batch "
                        "{}: {}\n",
                        tooLarge->degrees.dp, tooLarge->degrees.tp,
                        tooLarge->degrees.pp, tooLarge->degrees.unitRows,
                        tooLarge->reason);
  return text;
}

} // namespace

std::string summarize(const PlanResult &result, const Cluster &cluster) {
  const PlanFigures figures = figuresOf(result, cluster);
  return layoutLines(result, cluster) + timeLines(result, figures) +
         memoryLines(result, figures, cluster.device) +
         trafficLine(result.traffic) + "binds   " + figures.binds + "\n\n" +
         stageTable(result) + "\n" + remarkLines(result.remarks) +
         fmt::format(
             "gap     {} to the bound of this model of costs ({}), {} plans "
             "priced{}\n",
             share(result.price.stepPicoseconds - result.boundPicoseconds,
                   result.price.stepPicoseconds),
             formatPicoseconds(result.boundPicoseconds), result.plansPriced,
             result.exhaustive ? ", all plans covered" : "") +
         alternativeLines(result);
}

} // namespace monarch::planner
