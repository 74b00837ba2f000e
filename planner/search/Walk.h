//===- Walk.h - how values lie while ops are decided one by one -----------===//
//
// A state holds what matters of the ops decided so far for those that come: how
// each value that is still to be read lies, in which copies, and how its
// cotangent is wanted. Applying an op gives its cost: itself and its backward,
// the reshards of its operands, and of the cotangents that it gives back.
// Costs of forwards are never more than what resolve writes; those of
// cotangents are an estimate, as sums of them may be reduced together.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "planner/search/OpOptions.h"

namespace monarch::planner {

/// Sets of layouts as numbers, so that states hold no lists; 0 is the empty
/// set.
class LayoutSets {
public:
  /// Ascending.
  const std::vector<int> &operator[](int set) const { return sets[set]; }
  /// The set with one layout more, which is not in it.
  int with(int set, int layout);

private:
  std::vector<std::vector<int>> sets = {{}};
  std::map<std::vector<int>, int> numbers = {{{}, 0}};
};

/// A value that some later op reads; layouts by number.
struct LiveValue {
  ValueId value = None;
  int home = NoLayout;
  /// NoLayout: no gradient.
  int cotangent = NoLayout;
  /// Copies in other layouts than its home, by the number of their set.
  int copies = 0;
  bool operator==(const LiveValue &) const = default;
};

struct WalkState {
  std::vector<LiveValue> live; // ascending by value
};

struct OpCost {
  /// Forward and backward of the op alone.
  int64_t ownForward = 0;
  int64_t ownBackward = 0;
  /// Reshards of operands, reshards of cotangents and saved values.
  int64_t fetch = 0;
  int64_t cotangents = 0;

  int64_t forward() const { return ownForward + fetch; }
  int64_t backward() const { return ownBackward + cotangents; }
  int64_t total() const { return forward() + backward(); }
  /// At most what resolve writes for this op.
  int64_t least() const { return ownForward + ownBackward + fetch; }
};

class Walker {
public:
  /// Everything must outlive it.
  Walker(const StrategySpace &space, const SplitRules &rules,
         const OpCosts &costs, const OpOptions &options);

  /// The ops that will be walked, in order: fixes how long values live.
  void setSequence(const std::vector<OpId> &ops);
  /// An op that reads `value` means `instead`: the same value of another layer.
  void setAlias(ValueId value, ValueId instead) { alias[value] = instead; }

  bool isViewOfParameter(OpId op) const;
  /// How a follower runs behind what it follows.
  const OpOption &follow(OpId op, const WalkState &state, size_t axes) const;
  /// Changes the state to that after the op at this place of the sequence.
  OpCost apply(WalkState &state, OpId op, const OpOption &option, size_t place);

private:
  ValueId tracked(ValueId value) const;
  LiveValue makeLive(ValueId value, size_t result,
                     const OpOption &option) const;
  int64_t readParameter(WalkState &state, ValueId value, int wanted);
  int64_t fetch(LiveValue &value, int wanted);
  void readValue(WalkState &state, const Op &op, size_t operand,
                 const OpOption &option, OpCost &cost);

  const StrategySpace &space;
  const Graph &graph;
  const SplitRules &rules;
  const OpCosts &costs;
  const OpOptions &options;
  std::vector<bool> hasGradient;
  LayoutSets copySets;
  std::vector<ValueId> alias;
  std::vector<int64_t> lastUse;
};

} // namespace monarch::planner
