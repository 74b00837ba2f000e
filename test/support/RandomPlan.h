//===- RandomPlan.h - any legal plan, drawn at random ---------------------===//
//
// A random strategy for each forward op and axis, random layouts of parameters
// at rest, random stages, units and offset tables (empty blocks included),
// random choices on what is kept and what passes on partial. Pure in the seed.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "planner/plan/Plan.h"

namespace monarch::test {

struct RandomPlanLimits {
  int64_t ranks = 8;
  int stages = 3;
  int64_t unitsPerReplica = 3;
};

planner::Decisions randomPlan(const StrategySpace &space, uint64_t seed,
                              const RandomPlanLimits &limits = {});

/// "2x2 data,tensor, 2 stages, 3 units of 2 rows, tables random".
std::string describe(const planner::Decisions &decisions);

} // namespace monarch::test
