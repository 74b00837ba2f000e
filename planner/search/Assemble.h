//===- Assemble.h - from what the search chose to decisions ---------------===//
//
// Choices per deciding op become a plan: followers follow, cotangents of views
// stay partial through them and are reduced before anything else, what the
// forward gathered is kept, and each parameter lies at rest as its first reader
// wants it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "planner/search/Degrees.h"

namespace monarch::planner {

/// What a whole run has in common.
struct Workload {
  int64_t globalRows = 1;
  OptimizerKind optimizer = OptimizerKind::SGD;
  ScheduleKind schedule = ScheduleKind::OneFOneB;
  bool masterWeights = false;
};

/// `choice` per op on the axes without data axes; empty: whole, or following.
Decisions assemble(const StrategySpace &space, const MeshPlan &plan,
                   const std::vector<std::vector<int>> &choice,
                   const std::vector<int> &stage, int stages,
                   const Workload &workload);

} // namespace monarch::planner
