//===- Candidates.h - which degrees may be planned ------------------------===//
//
// All (dp, tp, pp, rows of a unit) with dp x tp x pp = the cluster's devices,
// inside the pins and the legal degrees; or why there are none.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "planner/search/SearchContext.h"

namespace monarch::planner {

struct Candidate {
  Degrees degrees;
  MeshPlan plan;
};

struct Candidates {
  std::vector<Candidate> legal;
  /// Degrees that a rule forbids, with the rule.
  std::vector<Alternative> forbidden;
};

/// MP3102 when pins leave nothing.
Expected<Candidates> listCandidates(SearchContext &context,
                                    const PlanRequest &request);

} // namespace monarch::planner
