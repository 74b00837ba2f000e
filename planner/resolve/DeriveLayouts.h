//===- DeriveLayouts.h - the layout of every operand and result -----------===//
//
// A plan chooses for forward ops; everything else follows, here and nowhere
// else: followers take their neighbour's split, backward ops inherit their
// forward op's labels, cotangents stay partial or are reduced as the plan says,
// stages of backward ops and of sums of cotangents. Pure: decisions in, layouts
// out.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "planner/plan/Plan.h"

namespace monarch::planner {

struct OpLayouts {
  std::vector<Layout> operands;
  std::vector<Layout> results;
  /// Labels split on each axis, for local bodies.
  std::vector<std::vector<std::string>> labels;
};

struct DerivedLayouts {
  std::vector<OpLayouts> ops;
  /// Per op; None for cloned ops.
  std::vector<int> stage;
  /// Per value: where the op that makes it leaves it; leaves: at rest, with
  /// everything but parameters replicated.
  std::vector<Layout> home;
  /// Per value; None for leaves and for results of cloned ops.
  std::vector<int> homeStage;
};

DerivedLayouts deriveLayouts(const StrategySpace &space,
                             const Decisions &decisions);

} // namespace monarch::planner
