//===- SplitRules.h - which choices a tp axis allows ----------------------===//
//
// A tp axis means: each attention splits its heads there, evenly, or runs whole
// there if they do not divide; each product with a weight splits the weight, so
// no rank holds it whole; other ops are free. No rank is left with an empty
// block. An attention must split on one axis at least.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "planner/search/Degrees.h"

namespace monarch::planner {

class SplitRules {
public:
  explicit SplitRules(const StrategySpace &space);

  /// Forward ops that decide for themselves: no followers, no clones.
  const std::vector<OpId> &decidingOps() const { return deciding; }
  bool hasAttention() const { return !attentions.empty(); }
  const std::vector<OpId> &attentionOps() const { return attentions; }
  bool isAttention(OpId op) const;

  /// The choices that the op may take on the next tensor axis, given those on
  /// the axes before it (choices[0..axis), row axes first). Never empty.
  std::vector<int> allowed(OpId op, const MeshPlan &plan,
                           const std::vector<int> &before) const;
  /// The choice on row axes: split by the batch, whole where an op has none.
  int rowChoice(OpId op) const { return rowChoices[op]; }
  /// All attentions split on at least one tp axis.
  bool canSplit(const MeshPlan &plan) const;
  /// The parameter that a value is, through views of it; -1.
  int parameterOf(ValueId value) const { return parameterRoots[value]; }

private:
  void findParameters();
  void findRowChoices();
  bool splitsHeads(OpId op, int choice) const;
  bool splitsWeight(OpId op, int choice) const;
  /// Some choices that begin with these split the op on a tp axis.
  bool splitsSomewhere(OpId op, const MeshPlan &plan,
                       std::vector<int> &choices) const;
  /// Every factor that this choice cuts has at least one index for each rank
  /// (evenly: as many), in view of what the axes before it left.
  bool leavesBlocks(OpId op, const MeshPlan &plan,
                    const std::vector<int> &before, int choice,
                    bool evenly) const;

  const StrategySpace &space;
  std::vector<OpId> deciding;
  std::vector<OpId> attentions;
  std::vector<int> parameterRoots;
  std::vector<int> rowChoices;
};

/// Choices per tensor axis of a mesh without data axes: every allowed
/// combination, or, where these are more than `limit`, those that change once
/// at most from one tp axis to the next.
std::vector<std::vector<int>> combinations(const SplitRules &rules, OpId op,
                                           const MeshPlan &plan, size_t limit);

} // namespace monarch::planner
