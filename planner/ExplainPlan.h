//===- ExplainPlan.h - why this plan of our own, why not that one ---------===//
//
// What Explain.h of planner/choose is for layouts, for plans that this project
// runs: the search is asked again with other pins, and the chosen program is
// priced on machines whose figures are a fifth better or worse. The search is
// not asked again there: it takes as long as the plan did.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "planner/Planner.h"
#include "planner/choose/Explain.h"

namespace monarch::planner {

struct PlanWhyNot {
  std::string pins;
  Verdict verdict = Verdict::Illegal;
  std::string reason;
  /// Illegal alone: what would be legal.
  std::string nearestLegal;
  /// 0: there is no such plan.
  int64_t stepPicoseconds = 0;
};

/// `instead`, as a user writes pins, wins over those of the request. MP3101:
/// it is no pins.
Expected<PlanWhyNot> whyNot(const Graph &graph, const Cluster &cluster,
                            const PlanRequest &request,
                            const PlanResult &result,
                            const std::string &instead);

struct PlanSensitivity {
  std::string what;
  /// 1.2 as 12, so that it compares exactly.
  int64_t tenths = 10;
  int64_t stepPicoseconds = 0;
  bool fits = true;
};
/// Each figure times 0.8 and times 1.2.
Expected<std::vector<PlanSensitivity>> sensitivity(const PlanResult &result,
                                                   const Cluster &cluster);

Binding firstBinding(const PlanResult &result,
                     const std::vector<PlanSensitivity> &list);

Json toJson(const PlanWhyNot &answer);
Json toJson(const PlanSensitivity &entry);
std::string summarize(const PlanWhyNot &answer);
std::string summarize(const std::vector<PlanSensitivity> &list,
                      const PlanResult &result);

} // namespace monarch::planner
