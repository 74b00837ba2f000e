//===- Planner.h - the best plan for a graph on a cluster -----------------===//
//
// The one entry of the planner: graph, cluster, workload and pins in;
// decisions, their price and what else was looked at out. Deterministic; limits
// are counts of work. The plan's unit may have other rows than the graph given,
// so the result carries the graph that its decisions are about.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/program/Memory.h"
#include "planner/cluster/Cluster.h"
#include "planner/cost/Price.h"
#include "planner/plan/PlanFile.h"
#include "planner/search/Degrees.h"
#include "planner/search/Pins.h"

#include <functional>
#include <memory>

namespace monarch::planner {

struct PlanProgress {
  /// Degrees that may be planned, and those that were looked at.
  int64_t candidates = 0, looked = 0;
  /// Plans through resolve.
  int64_t priced = 0;
  /// Estimated until a plan is priced. 0: nothing fits yet.
  int64_t bestPicoseconds = 0;
};

struct PlanRequest {
  int64_t globalRows = 1;
  OptimizerKind optimizer = OptimizerKind::SGD;
  Pins pins;
  /// Called after each candidate; false ends the search with the best so far.
  std::function<bool(const PlanProgress &)> onProgress;
};

/// A plan that lost, or could not be.
struct Alternative {
  Degrees degrees;
  /// 0: not priced.
  int64_t stepPicoseconds = 0;
  int64_t peakBytes = 0;
  std::string reason;
  /// Where the step goes; zeros: not priced.
  StepParts parts;
  bool fits = true;
};

struct PlanResult {
  /// The graph at the plan's unit rows, and its strategies.
  std::unique_ptr<Graph> graph;
  std::unique_ptr<StrategySpace> space;
  Decisions decisions;
  Degrees degrees;
  Price price;
  Traffic traffic;
  int64_t peakBytes = 0;
  /// Of each stage, on its fullest rank.
  std::vector<PeakMemory> memory;
  /// No plan in the space searched takes less, by this model of costs.
  int64_t boundPicoseconds = 0;
  /// Every plan was looked at or bounded away.
  bool exhaustive = false;
  /// False: ended early by `onProgress`.
  bool isComplete = true;
  /// Plans priced through resolve.
  int64_t plansPriced = 0;
  /// The best of each other family (dp, tp, pp); those that fit first, the
  /// fastest of them first.
  std::vector<Alternative> alternatives;
  std::vector<std::string> remarks;
};

/// MP3102 (exit 4): pins that no plan can have, with the legal values.
/// MP3103 (exit 4): nothing fits; what is needed and what there is. MP3105
/// (exit 4): nothing fits that has these pins. MP3104 (exit 7): ended by
/// `onProgress` before any plan that fits.
Expected<PlanResult> makePlan(const Graph &graph, const Cluster &cluster,
                              const PlanRequest &request);

/// monarch.plan/1 of a result. `graph` is the one that was given to `makePlan`.
PlanFile planFileOf(const PlanResult &result, const Graph &graph,
                    const Cluster &cluster, const PlanRequest &request);

/// A page for people: layout, stages, the step and its band, memory of the
/// fullest rank, throughput, what binds, the gap, and why other families lost.
std::string summarize(const PlanResult &result, const Cluster &cluster);

} // namespace monarch::planner
