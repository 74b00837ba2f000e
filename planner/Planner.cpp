//===- Planner.cpp - the best plan for a graph on a cluster ---------------===//
#include "planner/Planner.h"

#include "planner/PinConflict.h"

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

std::vector<PeakMemory> memoryOf(const Program &program) {
  std::vector<PeakMemory> stages;
  for (const Role &role : program.roles)
    stages.push_back(fullestRank(program, role));
  return stages;
}

std::string signedTime(int64_t picoseconds) {
  return (picoseconds < 0 ? "-" : "+") +
         formatPicoseconds(std::abs(picoseconds));
}

/// By how much, and which parts of the step make the difference.
std::string whySlower(const Alternative &loser, const Price &best) {
  const int64_t longer = loser.stepPicoseconds - best.stepPicoseconds;
  std::string text = fmt::format("{} ({:+.3g} %)", signedTime(longer),
                                 100 * static_cast<double>(longer) /
                                     static_cast<double>(best.stepPicoseconds));
  const StepParts own = best.parts(), &other = loser.parts;
  std::vector<std::pair<int64_t, const char *>> parts = {
      {other.computePicoseconds - own.computePicoseconds, "compute"},
      {other.collectivePicoseconds - own.collectivePicoseconds, "collectives"},
      {other.sendPicoseconds - own.sendPicoseconds, "sends"},
      {other.idlePicoseconds - own.idlePicoseconds, "idle"}};
  std::stable_sort(parts.begin(), parts.end(), [](auto &a, auto &b) {
    return std::abs(a.first) > std::abs(b.first);
  });
  constexpr size_t Most = 3;
  constexpr int64_t Worth = 500; // of a step
  const char *separator = ": ";
  for (size_t i = 0; i < Most; ++i)
    if (std::abs(parts[i].first) > best.stepPicoseconds / Worth) {
      text += fmt::format("{}{} {}", separator, parts[i].second,
                          signedTime(parts[i].first));
      separator = ", ";
    }
  return text;
}

/// Per family the best that was seen, with why it lost.
std::vector<Alternative> explained(std::vector<Alternative> losers,
                                   const PricedPlan &best, int64_t room) {
  auto rank = [](const Alternative &plan) {
    return plan.stepPicoseconds == 0 ? 2 : plan.fits ? 0 : 1;
  };
  std::stable_sort(losers.begin(), losers.end(),
                   [&](const Alternative &a, const Alternative &b) {
                     return std::tuple(rank(a), a.stepPicoseconds, a.degrees) <
                            std::tuple(rank(b), b.stepPicoseconds, b.degrees);
                   });
  auto familyOf = [](const Degrees &degrees) {
    return std::tuple(degrees.dp, degrees.tp, degrees.pp);
  };
  std::vector<Alternative> result;
  std::set<std::tuple<int64_t, int64_t, int64_t>> seen = {
      familyOf(best.degrees)};
  for (Alternative &loser : losers) {
    if (result.size() == AlternativeLimit ||
        !seen.insert(familyOf(loser.degrees)).second)
      continue;
    if (loser.stepPicoseconds > 0) {
      loser.reason = whySlower(loser, best.price);
      if (!loser.fits)
        loser.reason =
            fmt::format("needs {} of {}; {}", formatBytes(loser.peakBytes),
                        formatBytes(room), loser.reason);
    }
    result.push_back(std::move(loser));
  }
  return result;
}

/// What would help most: the larger part of the memory names the lever.
std::string lever(const PricedPlan &smallest) {
  PeakMemory fullest;
  for (const PeakMemory &own : memoryOf(smallest.resolved.program))
    if (own.bytes > fullest.bytes)
      fullest = own;
  const int64_t optimizer = fullest.of(MemoryUse::Optimizer);
  const int64_t states = fullest.of(MemoryUse::Parameters) +
                         fullest.of(MemoryUse::Gradients) + optimizer;
  const int64_t others = fullest.bytes - states;
  if (states >= others)
    return fmt::format(
        "parameters, gradients and optimizer states take {} of it: more tp or "
        "pp splits them{}",
        formatBytes(states), optimizer > 0 ? ", SGD has no states" : "");
  return fmt::format("activations take {} of it: a smaller micro-batch or more "
                     "tp lowers them",
                     formatBytes(others));
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
                    request.pins.schedule.value_or(ScheduleKind::OneFOneB),
                    request.pins.masterWeights.value_or(false)};
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
  bool anyMaster = std::any_of(
      graph.parameters.begin(), graph.parameters.end(), [&](const auto &p) {
        return p.trainable && mayHaveMaster(graph.value(p.value).type);
      });
  if (workload.masterWeights && !anyMaster)
    result.remarks.push_back("no parameter that is trained is in bfloat16 or "
                             "float16: there are no master weights");
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
  auto result = searchPlan(graph, cluster, request, /*scaleUp=*/true);
  if (result || result.error().id != "MP3103")
    return result;
  const auto conflict =
      conflictOfPins(request, result.error(), [&](const PlanRequest &other) {
        return searchPlan(graph, cluster, other, /*scaleUp=*/false);
      });
  return conflict ? Expected<PlanResult>(*conflict) : std::move(result);
}

} // namespace monarch::planner
