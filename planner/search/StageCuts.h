//===- StageCuts.h - where a pipeline is cut ------------------------------===//
//
// Stages are runs of the forward ops in order; a backward op goes with its
// forward op, a view of a parameter with what reads it next. So a cut is a
// place between two ops, and any cuts are legal.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "planner/search/Frontier.h"

namespace monarch::planner {

/// Forward ops between which there may be a cut: place i is before op i of
/// `ops`.
struct CutPlaces {
  std::vector<OpId> ops;
};
CutPlaces cutPlaces(const StrategySpace &space, const SplitRules &rules);

/// Stage of each op of the graph (0 for those that have none of their own),
/// from ascending cut places.
std::vector<int> stagesFromCuts(const StrategySpace &space,
                                const CutPlaces &places,
                                const std::vector<size_t> &cuts);

/// The cuts into runs whose slowest is fastest, first among equals.
class StageCutter {
public:
  StageCutter(const StrategySpace &space, const CutPlaces &places,
              const Assignment &assignment, int64_t linkBytesPerSecond,
              int mostStages);
  /// Nullopt when there are too few places.
  std::optional<std::vector<size_t>> cut(int stages) const;

private:
  void solve();

  const CutPlaces &places;
  int mostStages;
  /// Work of the ops before each place; time that its crossing takes.
  std::vector<int64_t> workBefore;
  std::vector<int64_t> hopPicoseconds;
  /// Places where less crosses than around them, ascending.
  std::vector<size_t> narrow;
  /// Ends of runs that are tried, with 0 and the end of all.
  std::vector<size_t> ends;
  std::vector<std::vector<int64_t>> slowest;
  std::vector<std::vector<size_t>> from;
};

} // namespace monarch::planner
