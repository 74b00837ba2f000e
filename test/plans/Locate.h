//===- Locate.h - the step at which a program goes wrong ------------------===//
//
// The one-process program and the partitioned one are of the same graph, so
// what a step of the one makes is what the same step of the other makes, put
// together from the ranks' blocks under the step's layout. The first step that
// makes something else is at fault: all that it reads is right.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "planner/resolve/Resolve.h"
#include "runtime/Session.h"

namespace monarch::test {

struct StepFault {
  planner::ResolvedStep step;
  int stage = 0;
  /// Of the global batch, -1 outside units.
  int64_t unit = -1;
  ValueId value = None;
  /// Relative to the largest entry.
  double error = 0;
};
/// "aten::mm, op 12 of blocks.0 (model.py:31): forward of unit 1 ...".
std::string describe(const StepFault &fault, const Graph &graph);

/// The first step in the order of execution that makes other values than the
/// one-process program does. Nothing: all steps of all units are right, so the
/// sums or updates at the end of the training step are not.
Expected<std::optional<StepFault>>
firstFault(const StrategySpace &space, const planner::Resolved &resolved);

/// The first op that the global view reads as another op, with other arguments
/// or from other values than the graph has: "aten::mm, op 12 of blocks.0
/// (model.py:31), reads value 5 as operand 1, not value 7". "": none.
std::string wiringFault(const Graph &graph, const Graph &wired);

/// Both for a plan whose program is not equal to one process, as text.
std::string locate(const StrategySpace &space,
                   const planner::Decisions &decisions);

} // namespace monarch::test
