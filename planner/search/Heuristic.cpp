//===- Heuristic.cpp - the search on graphs of any size -------------------===//
#include "planner/search/Heuristic.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <set>

namespace monarch::planner {

namespace {

/// Rows of a unit tried for each tp above 1; plans priced in all, and of those
/// that fit.
constexpr size_t RowsPerTensorDegree = 4;
constexpr int64_t PriceLimit = 24;
constexpr int64_t FittingLimit = 6;
/// Plans that fit after which an estimate this much above the best (in percent)
/// is not priced any more.
constexpr int64_t EnoughFitting = 3;
constexpr int64_t EstimateMargin = 110;
/// A tp whose best estimate is this far above the best (in percent) ends the
/// search for larger ones.
constexpr int64_t TensorMargin = 150;

struct Estimate {
  const Candidate *candidate = nullptr;
  const Assignment *assignment = nullptr;
  std::vector<size_t> cuts;
  int64_t stepPicoseconds = 0;
  int64_t memoryBytes = 0;
};

/// Work of one unit on one device as two sums: what splits divide, and what
/// they do not.
struct UnitWork {
  int64_t divisible = 0;
  int64_t launches = 0;
};

UnitWork workOf(const Graph &graph, const Cluster &cluster) {
  Mesh one;
  InstructionPricer pricer(cluster, one, OptimizerKind::SGD);
  UnitWork work;
  for (const Op &op : graph.ops) {
    if (isViewCall(op.name))
      continue;
    auto types = [&](const std::vector<ValueId> &values) {
      std::vector<TensorType> result;
      for (ValueId value : values)
        result.push_back(value == None ? TensorType{}
                                       : TensorType{graph.value(value).type,
                                                    graph.value(value).shape});
      return result;
    };
    int64_t launch = cluster.device.launchPicoseconds;
    work.divisible +=
        pricer.callPicoseconds(op.name, types(op.operands), types(op.results)) -
        launch;
    work.launches += launch;
  }
  return work;
}

class HeuristicSearch {
public:
  HeuristicSearch(SearchContext &context,
                  const std::vector<Candidate> &candidates)
      : context(context), candidates(candidates) {}

  HeuristicResult run() {
    context.progress.candidates = static_cast<int64_t>(candidates.size());
    orderByBound();
    makeEstimates();
    priceEstimates();
    boundAll();
    return std::move(result);
  }

private:
  void orderByBound() {
    std::map<int64_t, UnitWork> works;
    for (const Candidate &candidate : candidates) {
      auto [work, isNew] = works.try_emplace(candidate.degrees.unitRows);
      if (isNew)
        work->second =
            workOf(*withUnitRows(context.graph, candidate.degrees.unitRows),
                   context.cluster);
      order.emplace_back(closedFormBound(candidate, work->second), &candidate);
    }
    std::stable_sort(order.begin(), order.end(),
                     [](const auto &a, const auto &b) {
                       return std::tie(a.first, a.second->degrees) <
                              std::tie(b.first, b.second->degrees);
                     });
  }

  void makeEstimates() {
    std::map<int64_t, std::vector<std::pair<int64_t, const Candidate *>>>
        byTensor;
    for (const auto &entry : order)
      byTensor[entry.second->degrees.tp].push_back(entry);
    std::set<int64_t> goodRows;
    int64_t smallerTensor = 1;
    for (const auto &[tp, entries] : byTensor) {
      size_t first = estimates.size();
      std::set<int64_t> rows = rowsToTry(entries, goodRows, tp / smallerTensor);
      for (const auto &[bound, candidate] : entries)
        if (rows.count(candidate->degrees.unitRows) &&
            (!anyFits || bound <= bestEstimate) && !context.isStopped)
          lookAt(*candidate);
      // Ranks of one unit ever more in number pay off up to a point.
      int64_t best = bestFrom(first, goodRows);
      if (context.isStopped ||
          (anyFits && best > bestEstimate / 100 * TensorMargin))
        break;
      smallerTensor = tp;
    }
    std::stable_sort(estimates.begin(), estimates.end(),
                     [&](const Estimate &a, const Estimate &b) {
                       bool fitsA = fits(a), fitsB = fits(b);
                       if (fitsA != fitsB)
                         return fitsA;
                       if (!fitsA && a.memoryBytes != b.memoryBytes)
                         return a.memoryBytes < b.memoryBytes;
                       return std::tie(a.stepPicoseconds,
                                       a.candidate->degrees) <
                              std::tie(b.stepPicoseconds, b.candidate->degrees);
                     });
  }

  /// The work of a candidate, spread evenly over ranks, with nothing moved.
  int64_t closedFormBound(const Candidate &candidate,
                          const UnitWork &work) const {
    const Degrees &degrees = candidate.degrees;
    int64_t replicas = candidate.plan.replicas();
    int64_t perUnit =
        work.divisible / (degrees.dp / replicas * degrees.tp) + work.launches;
    return context.workload.globalRows / degrees.unitRows / replicas *
           (perUnit / degrees.pp);
  }

  /// All rows at first; then what was good with fewer ranks for each unit, or
  /// as much more as there are now more ranks; and, while nothing fits, the
  /// least.
  std::set<int64_t>
  rowsToTry(const std::vector<std::pair<int64_t, const Candidate *>> &entries,
            const std::set<int64_t> &good, int64_t growth) const {
    std::set<int64_t> all, rows;
    for (const auto &entry : entries)
      all.insert(entry.second->degrees.unitRows);
    if (good.empty() || all.size() <= RowsPerTensorDegree)
      return all;
    for (int64_t row : good)
      for (int64_t wanted : {row * growth, row})
        if (all.count(wanted))
          rows.insert(wanted);
    if (!anyFits)
      rows.insert(*all.begin());
    return rows.empty() ? all : rows;
  }

  bool fits(const Estimate &estimate) const {
    return estimate.memoryBytes <= context.cluster.device.usableBytes();
  }

  /// The best estimate from this one on that fits; sets the rows of the best.
  int64_t bestFrom(size_t first, std::set<int64_t> &goodRows) const {
    std::vector<const Estimate *> group;
    for (size_t i = first; i < estimates.size(); ++i)
      group.push_back(&estimates[i]);
    std::stable_sort(group.begin(), group.end(),
                     [&](const Estimate *a, const Estimate *b) {
                       bool worseA = !fits(*a), worseB = !fits(*b);
                       return std::tie(worseA, a->stepPicoseconds) <
                              std::tie(worseB, b->stepPicoseconds);
                     });
    if (!group.empty())
      goodRows.clear();
    for (const Estimate *estimate : group)
      if (goodRows.size() < RowsPerTensorDegree / 2)
        goodRows.insert(estimate->candidate->degrees.unitRows);
    return group.empty() || !fits(*group[0])
               ? std::numeric_limits<int64_t>::max()
               : group[0]->stepPicoseconds;
  }

  const std::vector<Assignment> &assignmentsOf(const Candidate &candidate) {
    MeshPlan inner = candidate.plan.withoutData();
    auto [entry, isNew] =
        assignments.try_emplace({candidate.degrees.unitRows, inner.mesh.axes});
    if (!isNew)
      return entry->second;
    MeshTable &table =
        context.table(candidate.degrees, candidate.plan, /*coarse=*/true);
    entry->second =
        searchFrontier(*table.unit.space, table.unit.rules, table.unit.classes,
                       table.costs, table.options, limits);
    for (Assignment &assignment : entry->second)
      for (std::vector<int> &choice : assignment.choice)
        choice = table.mesh.expanded(choice);
    return entry->second;
  }

  void lookAt(const Candidate &candidate) {
    for (const Assignment &assignment : assignmentsOf(candidate))
      addEstimate(candidate, assignment);
    ++context.progress.looked;
    if (anyFits)
      context.progress.bestPicoseconds = bestEstimate;
    context.goesOn();
  }

  void addEstimate(const Candidate &candidate, const Assignment &assignment) {
    const MeshTable &table =
        context.table(candidate.degrees, candidate.plan, /*coarse=*/true);
    const Unit &unit = table.unit;
    const Cluster &cluster = context.cluster;
    int64_t link = cluster.levels.empty()
                       ? std::numeric_limits<int64_t>::max() / Million
                       : cluster.levels.back().bytesPerSecond;
    int stages = static_cast<int>(candidate.degrees.pp);
    StageCutter cutter(*unit.space, unit.places, assignment, link, stages);
    std::optional<std::vector<size_t>> cuts = cutter.cut(stages);
    if (!cuts)
      return;
    std::vector<int> stage = stagesFromCuts(*unit.space, unit.places, *cuts);
    std::vector<int64_t> busy(stages, 0);
    for (OpId op : unit.places.ops)
      busy[stage[op]] += assignment.forwardPicoseconds[op] +
                         assignment.backwardPicoseconds[op];
    int64_t units = context.workload.globalRows / candidate.degrees.unitRows /
                    candidate.plan.replicas();
    int64_t slowest = *std::max_element(busy.begin(), busy.end());
    int64_t once = 0;
    for (int64_t time : busy)
      once += time;
    StateCost states = stateCost(candidate, unit, stage);
    Estimate estimate;
    estimate.candidate = &candidate;
    estimate.assignment = &assignment;
    estimate.cuts = std::move(*cuts);
    estimate.stepPicoseconds =
        (units - 1) * slowest + once + states.stepPicoseconds;
    estimate.memoryBytes =
        states.bytes + savedBytes(candidate, assignment, unit, stage, units);
    if (fits(estimate)) {
      anyFits = true;
      bestEstimate = std::min(bestEstimate, estimate.stepPicoseconds);
    }
    estimates.push_back(std::move(estimate));
  }

  struct StateCost {
    int64_t bytes = 0;
    int64_t stepPicoseconds = 0;
  };

  /// Parameters of the fullest stage: their memory, reduction and update.
  StateCost stateCost(const Candidate &candidate, const Unit &unit,
                      const std::vector<int> &stage) const {
    const Graph &graph = *unit.graph;
    const Device &device = context.cluster.device;
    bool adam = context.workload.optimizer == OptimizerKind::AdamW;
    std::vector<StateCost> ofStage(candidate.degrees.pp);
    std::vector<int> owner(graph.parameters.size(), -1);
    for (size_t i = graph.ops.size(); i-- > 0;)
      if (graph.ops[i].phase == Phase::Forward)
        for (ValueId operand : graph.ops[i].operands)
          if (operand != None && unit.rules.parameterOf(operand) >= 0)
            owner[unit.rules.parameterOf(operand)] = stage[i];
    Links links(context.cluster, candidate.plan.mesh);
    std::vector<int> dataAxes;
    for (int axis = 0; axis < candidate.plan.dataAxes; ++axis)
      dataAxes.push_back(axis);
    for (size_t p = 0; p < graph.parameters.size(); ++p) {
      const Value &value = graph.value(graph.parameters[p].value);
      StateCost &cost = ofStage[std::max(0, owner[p])];
      int64_t bytes = byteCount(value);
      if (value.shape.size() >= 2)
        bytes /= candidate.degrees.tp;
      cost.bytes += bytes;
      if (!graph.parameters[p].trainable)
        continue;
      // Of the gradient, each state and the master copy.
      bool hasMaster =
          context.workload.masterWeights && mayHaveMaster(value.type);
      int64_t updated =
          hasMaster ? bytes / byteWidth(value.type) * byteWidth(DType::Float32)
                    : bytes;
      cost.bytes += updated * ((adam ? 3 : 1) + (hasMaster ? 1 : 0));
      int64_t replicas = candidate.plan.replicas();
      cost.stepPicoseconds +=
          picosecondsFor(updated * (adam ? 7 : 3), device.memoryBytesPerSecond,
                         device.memoryEfficiency) +
          device.launchPicoseconds +
          links.ringPicoseconds(0, dataAxes,
                                2 * (replicas - 1) * (updated / replicas), 2);
    }
    StateCost fullest;
    for (const StateCost &cost : ofStage) {
      fullest.bytes = std::max(fullest.bytes, cost.bytes);
      fullest.stepPicoseconds =
          std::max(fullest.stepPicoseconds, cost.stepPicoseconds);
    }
    return fullest;
  }

  /// What the units in flight keep for their backward, in the fullest stage.
  int64_t savedBytes(const Candidate &candidate, const Assignment &assignment,
                     const Unit &unit, const std::vector<int> &stage,
                     int64_t units) const {
    const Graph &graph = *unit.graph;
    int64_t stages = candidate.degrees.pp;
    std::vector<int64_t> bytes(stages, 0);
    std::vector<bool> saved(graph.values.size(), false);
    for (const Op &op : graph.ops)
      if (op.phase == Phase::Backward)
        for (ValueId operand : op.operands)
          if (operand != None)
            saved[operand] = true;
    for (OpId op : unit.places.ops)
      for (ValueId result : graph.op(op).results)
        if (result != None && saved[result] && !isViewCall(graph.op(op).name))
          bytes[stage[op]] += assignment.valueBytes[result];
    int64_t fullest = 0;
    for (int64_t s = 0; s < stages; ++s) {
      int64_t inFlight = context.workload.schedule == ScheduleKind::GPipe
                             ? units
                             : std::min(units, stages - s);
      fullest = std::max(fullest, bytes[s] * inFlight);
    }
    return fullest;
  }

  void priceEstimates() {
    int64_t fitting = 0, priced = 0;
    for (const Estimate &estimate : estimates) {
      bool enough =
          // One plan that fits is the least that a search can end with.
          (fitting > 0 && !context.goesOn()) || fitting >= FittingLimit ||
          priced >= PriceLimit ||
          (fitting >= EnoughFitting &&
           estimate.stepPicoseconds >
               result.best->price.stepPicoseconds / 100 * EstimateMargin);
      if (enough) {
        result.losers.push_back(
            {estimate.candidate->degrees,
             0,
             0,
             fmt::format("estimated {:.3g} s, not priced",
                         1e-12 * static_cast<double>(estimate.stepPicoseconds)),
             {},
             true});
        continue;
      }
      ++priced;
      fitting += priceOne(estimate) ? 1 : 0;
    }
  }

  bool priceOne(const Estimate &estimate) {
    const Candidate &candidate = *estimate.candidate;
    const Unit &unit = context.unit(candidate.degrees.unitRows);
    std::optional<PricedPlan> priced = context.priced(
        candidate.degrees,
        assemble(*unit.space, candidate.plan, estimate.assignment->choice,
                 stagesFromCuts(*unit.space, unit.places, estimate.cuts),
                 static_cast<int>(candidate.degrees.pp), context.workload));
    if (!priced)
      return false;
    int64_t peak = priced->resolved.program.predictedPeakBytes;
    if (!context.fits(*priced)) {
      addLoser(*priced, false);
      if (!result.smallest ||
          peak < result.smallest->resolved.program.predictedPeakBytes)
        result.smallest = std::move(priced);
      return false;
    }
    if (result.best &&
        result.best->price.stepPicoseconds <= priced->price.stepPicoseconds) {
      addLoser(*priced, true);
      return true;
    }
    if (result.best)
      addLoser(*result.best, true);
    context.progress.bestPicoseconds = priced->price.stepPicoseconds;
    result.best = std::move(priced);
    return true;
  }

  void addLoser(const PricedPlan &plan, bool fits) {
    result.losers.push_back({plan.degrees, plan.price.stepPicoseconds,
                             plan.resolved.program.predictedPeakBytes, "",
                             plan.price.parts(), fits});
  }

  /// Exact sums of what ops cost alone where a mesh was looked at, the closed
  /// form elsewhere.
  void boundAll() {
    result.boundPicoseconds = std::numeric_limits<int64_t>::max();
    for (const auto &[closedForm, candidate] : order) {
      int64_t bound = closedForm;
      MeshPlan inner = candidate->plan.withoutData();
      if (assignments.count({candidate->degrees.unitRows, inner.mesh.axes})) {
        MeshTable &table = context.table(candidate->degrees, candidate->plan,
                                         /*coarse=*/true);
        int64_t units = context.workload.globalRows /
                        candidate->degrees.unitRows /
                        candidate->plan.replicas();
        bound = units * table.leastPicoseconds(limits.combinations) /
                candidate->degrees.pp;
      }
      result.boundPicoseconds = std::min(result.boundPicoseconds, bound);
    }
  }

  SearchContext &context;
  const std::vector<Candidate> &candidates;
  FrontierLimits limits;
  std::vector<std::pair<int64_t, const Candidate *>> order;
  std::map<std::pair<int64_t, std::vector<MeshAxis>>, std::vector<Assignment>>
      assignments;
  std::vector<Estimate> estimates;
  bool anyFits = false;
  int64_t bestEstimate = std::numeric_limits<int64_t>::max();
  HeuristicResult result;
};

} // namespace

HeuristicResult searchHeuristically(SearchContext &context,
                                    const std::vector<Candidate> &candidates) {
  return HeuristicSearch(context, candidates).run();
}

} // namespace monarch::planner
