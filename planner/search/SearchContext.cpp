//===- SearchContext.cpp - what the searches share ------------------------===//
#include "planner/search/SearchContext.h"

#include <algorithm>
#include <limits>

namespace monarch::planner {

Unit::Unit(Graph scaled)
    : graph(std::make_unique<Graph>(std::move(scaled))),
      space(std::make_unique<StrategySpace>(*graph)), rules(*space),
      classes(classifyOps(*space)), places(cutPlaces(*space, rules)) {}

MeshTable::MeshTable(const Unit &unit, const Cluster &cluster,
                     CoarseMesh coarseMesh, OptimizerKind optimizer)
    : unit(unit), mesh(std::move(coarseMesh)),
      costs(*unit.space, cluster, mesh.plan.mesh, optimizer),
      options(*unit.space, unit.rules, unit.classes, costs, mesh.plan) {}

int64_t MeshTable::leastPicoseconds(size_t combinationLimit) const {
  int64_t total = 0;
  for (OpId op : unit.rules.decidingOps()) {
    int64_t least = std::numeric_limits<int64_t>::max();
    for (const OpOption &option : options.of(op, combinationLimit))
      least = std::min(least, option.leastPicoseconds());
    total += least;
  }
  return total;
}

bool SearchContext::goesOn() {
  progress.priced = plansPriced;
  isStopped = isStopped || (onProgress && !onProgress(progress));
  return !isStopped;
}

Unit &SearchContext::unit(int64_t rows) {
  std::unique_ptr<Unit> &entry = units[rows];
  if (!entry)
    entry = std::make_unique<Unit>(*withUnitRows(graph, rows));
  return *entry;
}

std::unique_ptr<Unit> SearchContext::releaseUnit(int64_t rows) {
  tables.clear();
  return std::move(units.at(rows));
}

MeshTable &SearchContext::table(const Degrees &degrees, const MeshPlan &plan,
                                bool coarse) {
  MeshPlan inner = plan.withoutData();
  std::unique_ptr<MeshTable> &entry =
      tables[{degrees.unitRows, inner.mesh.axes, coarse}];
  if (!entry) {
    const Unit &scaled = unit(degrees.unitRows);
    CoarseMesh mesh;
    if (coarse) {
      mesh = coarsen(scaled.rules, inner);
    } else {
      mesh.plan = std::move(inner);
      for (size_t axis = 0; axis < mesh.plan.mesh.axes.size(); ++axis)
        mesh.axisOf.push_back(static_cast<int>(axis));
    }
    entry = std::make_unique<MeshTable>(scaled, cluster, std::move(mesh),
                                        workload.optimizer);
  }
  return *entry;
}

std::optional<PricedPlan> SearchContext::priced(const Degrees &degrees,
                                                Decisions decisions) {
  ++plansPriced;
  Expected<Resolved> resolved =
      resolveToPrice(*unit(degrees.unitRows).space, decisions);
  if (!resolved)
    return std::nullopt;
  Expected<Price> cost = price(resolved->program, cluster);
  if (!cost)
    return std::nullopt;
  return PricedPlan{degrees, std::move(decisions), std::move(*resolved),
                    std::move(*cost)};
}

} // namespace monarch::planner
