//===- Planner.cpp - the best plan for a graph on a cluster ---------------===//
#include "planner/Planner.h"

#include "core/program/Verify.h"
#include "planner/cluster/Units.h"
#include "planner/search/Heuristic.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace monarch::planner {

namespace {

/// Graphs with at most this many ops that may be cut apart are searched
/// exhaustively, if their plans are no more than that.
constexpr size_t ExhaustiveOps = 8;
constexpr int64_t ExhaustivePlans = 4'000;
constexpr size_t AlternativeLimit = 10;
/// Clusters looked at, each twice the one before, for the smallest that fits.
constexpr int ScalingLimit = 6;

bool isSmall(SearchContext &context, const std::vector<Candidate> &candidates) {
  int64_t plans = 0;
  for (const Candidate &candidate : candidates) {
    if (context.unit(candidate.degrees.unitRows).places.ops.size() >
        ExhaustiveOps)
      return false;
    plans +=
        countPlans(context, candidate.degrees, candidate.plan, ExhaustivePlans);
    if (plans > ExhaustivePlans)
      return false;
  }
  return true;
}

std::vector<MemoryParts> memoryOf(const Program &program) {
  std::vector<MemoryParts> stages;
  for (const Role &role : program.roles) {
    MemoryParts parts;
    std::vector<int64_t> last;
    for (const MeshAxis &axis : program.mesh.axes)
      last.push_back(axis.size - 1);
    RoleView view(role, program.mesh, program.tables, last);
    bool adam = program.optimizer == OptimizerKind::AdamW;
    for (const ProgramParameter &parameter : role.parameters) {
      int64_t bytes = view.bytes(parameter.value);
      parts.parameterBytes += bytes;
      if (parameter.gradient == None)
        continue;
      parts.gradientBytes += view.bytes(parameter.gradient);
      parts.optimizerBytes += adam ? 2 * bytes : 0;
    }
    int64_t first = role.stage * program.mesh.size();
    int64_t peak = peakBytesOf(program, first + program.mesh.size() - 1);
    parts.otherBytes =
        std::max<int64_t>(0, peak - parts.parameterBytes - parts.gradientBytes -
                                 parts.optimizerBytes);
    stages.push_back(parts);
  }
  return stages;
}

std::string percent(int64_t part, int64_t whole) {
  return fmt::format("{:.3g} %", 100.0 * static_cast<double>(part) /
                                     static_cast<double>(whole));
}

/// Per degrees the best that was seen, with by how much it lost.
std::vector<Alternative> explained(std::vector<Alternative> losers,
                                   const PricedPlan &best, int64_t room) {
  std::stable_sort(losers.begin(), losers.end(),
                   [](const Alternative &a, const Alternative &b) {
                     bool pricedA = a.stepPicoseconds > 0;
                     bool pricedB = b.stepPicoseconds > 0;
                     if (pricedA != pricedB)
                       return pricedA;
                     return std::tie(a.stepPicoseconds, a.degrees) <
                            std::tie(b.stepPicoseconds, b.degrees);
                   });
  std::vector<Alternative> result;
  std::set<Degrees> seen = {best.degrees};
  for (Alternative &loser : losers) {
    if (result.size() == AlternativeLimit || !seen.insert(loser.degrees).second)
      continue;
    if (loser.reason == "slower")
      loser.reason = "slower by " +
                     percent(loser.stepPicoseconds - best.price.stepPicoseconds,
                             best.price.stepPicoseconds);
    else if (loser.reason == "memory")
      loser.reason = fmt::format("needs {} of {}", formatBytes(loser.peakBytes),
                                 formatBytes(room));
    result.push_back(std::move(loser));
  }
  return result;
}

/// What would help most: the larger part of the memory names the lever.
std::string lever(const PricedPlan &smallest) {
  MemoryParts fullest;
  for (const MemoryParts &parts : memoryOf(smallest.resolved.program)) {
    int64_t sum = parts.parameterBytes + parts.gradientBytes +
                  parts.optimizerBytes + parts.otherBytes;
    if (sum > fullest.parameterBytes + fullest.gradientBytes +
                  fullest.optimizerBytes + fullest.otherBytes)
      fullest = parts;
  }
  int64_t states =
      fullest.parameterBytes + fullest.gradientBytes + fullest.optimizerBytes;
  if (states >= fullest.otherBytes)
    return fmt::format(
        "parameters, gradients and optimizer states take {} of it: more tp or "
        "pp splits them{}",
        formatBytes(states),
        fullest.optimizerBytes > 0 ? ", SGD has no states" : "");
  return fmt::format("activations take {} of it: a smaller micro-batch or more "
                     "tp lowers them",
                     formatBytes(fullest.otherBytes));
}

/// What ops that every rank computes in full cost.
void addWholeCosts(const PricedPlan &best, const Unit &unit,
                   const Cluster &cluster, std::vector<std::string> &remarks) {
  const StrategySpace &space = *unit.space;
  const Graph &graph = space.graph();
  const InstructionPricer pricer(cluster, best.decisions.mesh,
                                 best.decisions.optimizer);
  auto typesOf = [&](const std::vector<ValueId> &values) {
    std::vector<TensorType> types;
    for (ValueId value : values)
      if (value != None)
        types.push_back({graph.value(value).type, graph.value(value).shape});
    return types;
  };
  std::map<std::string, int64_t> costs;
  for (OpId id = 0; id < static_cast<OpId>(graph.ops.size()); ++id)
    if (const Op &op = graph.op(id); !space.rule(id))
      costs[op.name] += pricer.callPicoseconds(op.name, typesOf(op.operands),
                                               typesOf(op.results));
  for (std::string &remark : remarks)
    for (const auto &[name, picoseconds] : costs)
      if (remark.starts_with(name + " kept whole"))
        remark += fmt::format(", {} of each unit on every rank",
                              formatPicoseconds(picoseconds));
}

Expected<PlanResult> searchPlan(const Graph &graph, const Cluster &cluster,
                                const PlanRequest &request, bool scaleUp);

Error nothingFits(const Graph &graph, const Cluster &cluster,
                  const PlanRequest &request,
                  const std::optional<PricedPlan> &smallest, bool scaleUp) {
  Error error{"MP3103", ExitCode::Infeasible, "no plan was found", cluster.name,
              ""};
  if (!smallest)
    return error;
  error.what = fmt::format(
      "nothing fits: the leanest plan found (dp={} tp={} pp={}, micro-batch "
      "{}) needs {} a device, there are {}",
      smallest->degrees.dp, smallest->degrees.tp, smallest->degrees.pp,
      smallest->degrees.unitRows,
      formatBytes(smallest->resolved.program.predictedPeakBytes),
      formatBytes(cluster.device.usableBytes()));
  if (!scaleUp)
    return error;
  error.fix = lever(*smallest);
  // Fixed degrees are for this many devices.
  PlanRequest free = request;
  free.pins.dp = free.pins.tp = free.pins.pp = std::nullopt;
  for (int doubling = 1; doubling <= ScalingLimit; ++doubling) {
    Cluster larger = scaled(cluster, int64_t(1) << doubling);
    const auto found = searchPlan(graph, larger, free, /*scaleUp=*/false);
    if (found) {
      error.fix += fmt::format("; it fits {} devices of this kind",
                               larger.deviceCount());
      return error;
    }
    if (found.error().code == ExitCode::Limit)
      return error;
  }
  error.fix += fmt::format("; it does not fit {} devices of this kind either",
                           cluster.deviceCount() << ScalingLimit);
  return error;
}

/// Attentions and axes that do not go together.
void addTensorRemarks(const PricedPlan &best, const Unit &unit,
                      std::vector<std::string> &remarks) {
  const Mesh &mesh = best.decisions.mesh;
  for (size_t axis = 0; axis < mesh.axes.size(); ++axis) {
    if (!mesh.axes[axis].name.starts_with("tp"))
      continue;
    std::vector<OpId> whole;
    for (OpId op : unit.rules.attentionOps())
      if (best.decisions.choice[op][axis] == 0)
        whole.push_back(op);
    if (!whole.empty())
      remarks.push_back(
          fmt::format("{} of {} attentions run whole on {}: their heads do not "
                      "divide by {}",
                      whole.size(), unit.rules.attentionOps().size(),
                      mesh.axes[axis].name, mesh.axes[axis].size));
  }
}

Expected<PlanResult> searchPlan(const Graph &graph, const Cluster &cluster,
                                const PlanRequest &request, bool scaleUp) {
  Workload workload{request.globalRows, request.optimizer,
                    request.pins.schedule.value_or(ScheduleKind::OneFOneB)};
  SearchContext context(graph, cluster, workload, request.onProgress);
  Expected<Candidates> candidates = listCandidates(context, request);
  if (!candidates)
    return candidates.error();

  HeuristicResult found = searchHeuristically(context, candidates->legal);
  PlanResult result;
  // Whether a larger cluster has room needs no proof that nothing is better.
  if (scaleUp && context.goesOn() && isSmall(context, candidates->legal)) {
    result.exhaustive = true;
    for (const Candidate &candidate : candidates->legal)
      searchExhaustively(context, candidate.degrees, candidate.plan,
                         ExhaustivePlans, found.best);
  }
  if (!found.best && context.isStopped)
    return Error{"MP3104", ExitCode::Limit,
                 fmt::format("ended before any plan that fits was found: {} of "
                             "{} degrees were looked at",
                             context.progress.looked,
                             context.progress.candidates),
                 cluster.name, "let the search run longer"};
  if (!found.best)
    return nothingFits(graph, cluster, request, found.smallest, scaleUp);

  PricedPlan &best = *found.best;
  const Unit &unit = context.unit(best.degrees.unitRows);
  result.decisions = best.decisions;
  result.degrees = best.degrees;
  result.price = best.price;
  result.traffic = best.resolved.program.predicted;
  result.peakBytes = best.resolved.program.predictedPeakBytes;
  result.memory = memoryOf(best.resolved.program);
  result.boundPicoseconds =
      result.exhaustive
          ? best.price.stepPicoseconds
          : std::min(found.boundPicoseconds, best.price.stepPicoseconds);
  result.plansPriced = context.plansPriced;
  found.losers.insert(found.losers.end(), candidates->forbidden.begin(),
                      candidates->forbidden.end());
  result.alternatives =
      explained(std::move(found.losers), best, cluster.device.usableBytes());
  result.isComplete = !context.isStopped;
  result.remarks = best.resolved.remarks;
  if (!result.isComplete)
    result.remarks.push_back(
        fmt::format("ended early: {} of {} degrees were looked at",
                    context.progress.looked, context.progress.candidates));
  addWholeCosts(best, unit, cluster, result.remarks);
  addTensorRemarks(best, unit, result.remarks);
  if (!graph.separable)
    result.remarks.push_back(fmt::format(
        "the loss depends on which rows are in a unit: units of {} rows are "
        "given, never chosen",
        result.decisions.unitRows));
  else if (!graph.dynamicBatch)
    result.remarks.push_back(
        fmt::format("the export fixes the batch: units of {} rows",
                    result.decisions.unitRows));
  std::unique_ptr<Unit> kept = context.releaseUnit(best.degrees.unitRows);
  result.graph = std::move(kept->graph);
  result.space = std::move(kept->space);
  return result;
}

} // namespace

Expected<PlanResult> makePlan(const Graph &graph, const Cluster &cluster,
                              const PlanRequest &request) {
  return searchPlan(graph, cluster, request, /*scaleUp=*/true);
}

} // namespace monarch::planner
