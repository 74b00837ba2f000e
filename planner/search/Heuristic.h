//===- Heuristic.h - the search on graphs of any size ---------------------===//
//
// Degrees are ordered by a closed-form bound; for the promising ones the
// frontier programme chooses ops and the cutter stages, and their step is
// estimated; the best estimates go through resolve, until none that is left can
// be expected to win. All limits are counts.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "planner/search/Candidates.h"

namespace monarch::planner {

struct HeuristicResult {
  std::optional<PricedPlan> best;
  /// Of the plans that were priced and lost, and those that were not.
  std::vector<Alternative> losers;
  /// No plan of any candidate takes less.
  int64_t boundPicoseconds = 0;
  /// The plan that comes nearest to fitting, where none fits.
  std::optional<PricedPlan> smallest;
};

HeuristicResult searchHeuristically(SearchContext &context,
                                    const std::vector<Candidate> &candidates);

} // namespace monarch::planner
