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

/// The cuts into `stages` runs whose slowest is fastest, first among equals.
/// `hopPicosecondsPerByte` is in millionths. Empty when there are too few ops.
class StageCutter {
public:
  StageCutter(const StrategySpace &space, const CutPlaces &places,
              const Assignment &assignment, int64_t linkBytesPerSecond);
  std::optional<std::vector<size_t>> cut(int stages) const;

private:
  const CutPlaces &places;
  /// Work of ops before each place; bytes that cross it.
  std::vector<int64_t> workBefore;
  std::vector<int64_t> hopPicoseconds;
  /// Places where little crosses, ascending.
  std::vector<size_t> narrow;
};

} // namespace monarch::planner
