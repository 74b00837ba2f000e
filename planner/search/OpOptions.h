//===- OpOptions.h - a forward op with its backward, under one choice -----===//
//
// For a choice per tensor axis: what layouts a forward op wants and leaves,
// what its backward ops make of cotangents, and what all of it costs by itself.
// Follows DeriveLayouts, op by op, for what does not depend on the rest of the
// plan. Ops of one class (equal up to the values they touch, as in repeated
// layers) share their options.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "planner/search/OpClasses.h"
#include "planner/search/OpCosts.h"
#include "planner/search/SplitRules.h"

namespace monarch::planner {

inline constexpr int NoLayout = -1;

struct OpOption {
  /// Per axis of the mesh without data axes.
  std::vector<int> choice;
  /// Layouts by number.
  std::vector<int> operands;
  std::vector<int> results;
  /// In which the backward leaves the cotangent of an operand, and in which it
  /// wants that of a result; NoLayout where it has none of its own.
  std::vector<int> operandCotangents;
  std::vector<int> resultCotangents;
  /// The results' with what is partial whole: how a cotangent that nothing
  /// else decides about lies.
  std::vector<int> resultDuals;
  int64_t forwardPicoseconds = 0;
  int64_t backwardPicoseconds = 0;
  /// Reshards inside the backward: saved values that it wants otherwise.
  int64_t refetchPicoseconds = 0;

  /// The ops alone, without any reshard: never more than resolve writes.
  int64_t leastPicoseconds() const {
    return forwardPicoseconds + backwardPicoseconds;
  }
};

class OpOptions {
public:
  /// Everything must outlive it; the mesh has no data axes.
  OpOptions(const StrategySpace &space, const SplitRules &rules,
            const std::vector<int> &classes, const OpCosts &costs,
            const MeshPlan &plan)
      : space(space), rules(rules), classes(classes), costs(costs), plan(plan) {
  }

  /// The combinations that the op may take (see `combinations`).
  const std::vector<OpOption> &of(OpId op, size_t limit) const;
  /// Any op under any choices.
  const OpOption &under(OpId op, const std::vector<int> &choice) const;
  /// A follower behind an operand that lies like this (by number).
  const OpOption &following(OpId op, int operand) const;
  /// The same, of a view of a parameter: from what is wanted of the result.
  const OpOption &wanting(OpId op, int result) const;

private:
  OpOption derive(OpId op, const std::vector<int> &choice) const;
  const OpOption &matching(OpId op, int layout, bool ofResult) const;

  const StrategySpace &space;
  const SplitRules &rules;
  const std::vector<int> &classes;
  const OpCosts &costs;
  const MeshPlan &plan;
  mutable std::map<std::pair<int, size_t>, std::vector<OpOption>>
      optionsOfClass;
  mutable std::map<std::pair<int, std::vector<int>>, OpOption> underChoice;
  mutable std::map<std::tuple<int, int, bool>, const OpOption *> matched;
};

} // namespace monarch::planner
