//===- SearchContext.h - what the searches share --------------------------===//
//
// Graphs for each number of rows in a unit, and what is known of each mesh:
// made on demand, kept, and shared by all degrees that agree on them (the costs
// of a unit do not depend on dp and pp).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "planner/Planner.h"
#include "planner/resolve/Resolve.h"
#include "planner/search/Assemble.h"
#include "planner/search/CoarseMesh.h"
#include "planner/search/StageCuts.h"

namespace monarch::planner {

/// The graph at some rows a unit.
struct Unit {
  explicit Unit(Graph scaled);
  std::unique_ptr<Graph> graph;
  std::unique_ptr<StrategySpace> space;
  SplitRules rules;
  std::vector<int> classes;
  CutPlaces places;
};

/// One unit on one mesh without data axes.
struct MeshTable {
  MeshTable(const Unit &unit, const Cluster &cluster, CoarseMesh coarseMesh,
            OptimizerKind optimizer);
  const Unit &unit;
  /// Its axes may stand for several of the plan's.
  CoarseMesh mesh;
  OpCosts costs;
  OpOptions options;
  /// Work of a unit if each op could choose for itself and nothing moved.
  int64_t leastPicoseconds(size_t combinationLimit) const;
};

/// A plan through resolve.
struct PricedPlan {
  Degrees degrees;
  Decisions decisions;
  Resolved resolved;
  Price price;
};

class SearchContext {
public:
  SearchContext(const Graph &graph, const Cluster &cluster,
                const Workload &workload,
                const std::function<bool(const PlanProgress &)> &onProgress)
      : graph(graph), cluster(cluster), workload(workload),
        onProgress(onProgress) {}

  /// Whether to look at more; asked after each candidate. Once false, always.
  bool goesOn();

  Unit &unit(int64_t rows);
  MeshTable &table(const Degrees &degrees, const MeshPlan &plan, bool coarse);
  std::unique_ptr<Unit> releaseUnit(int64_t rows);

  /// Resolves and prices; counts. Nullopt when resolve refuses.
  std::optional<PricedPlan> priced(const Degrees &degrees, Decisions decisions);
  bool fits(const PricedPlan &plan) const {
    return plan.resolved.program.predictedPeakBytes <=
           cluster.device.usableBytes();
  }

  const Graph &graph;
  const Cluster &cluster;
  const Workload &workload;
  int64_t plansPriced = 0;
  PlanProgress progress;
  bool isStopped = false;

private:
  const std::function<bool(const PlanProgress &)> &onProgress;
  std::map<int64_t, std::unique_ptr<Unit>> units;
  std::map<std::tuple<int64_t, std::vector<MeshAxis>, bool>,
           std::unique_ptr<MeshTable>>
      tables;
};

/// The cheapest of all plans of these degrees, if there are at most
/// `leafLimit`: branch and bound over cuts and choices, with leaves priced
/// through resolve. `best` is improved in place; returns false (and does
/// nothing) where there are more.
bool searchExhaustively(SearchContext &context, const Degrees &degrees,
                        const MeshPlan &plan, int64_t leafLimit,
                        std::optional<PricedPlan> &best);
/// How many plans that would look at, without bounds.
int64_t countPlans(SearchContext &context, const Degrees &degrees,
                   const MeshPlan &plan, int64_t limit);

} // namespace monarch::planner
