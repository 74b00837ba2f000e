//===- Strategies.h - what may be split in a graph, and how ---------------===//
//
// Built once per graph, from the rules alone. First the factors of every dim of
// every value are inferred (a fixpoint over labels, cotangent pairs, views and
// sections); then the slots of each op get labels; then each forward op and its
// backward ops form a group whose labels are united through shared values and
// cotangent pairs. A *choice* says how a forward op runs along one mesh axis;
// its backward ops inherit it. A plan gives one choice per op and axis; columns
// of several axes combine freely.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/registry/Rule.h"

#include <memory>

namespace monarch {

/// A factor of an op's label: `factor` counts within the section, but for
/// views, where it numbers the matched factors of one row-major group.
struct SlotLabel {
  std::string label;
  int section = 0;
  int64_t factor = 0;
  auto operator<=>(const SlotLabel &) const = default;
};

struct Choice {
  /// Unique within the op: "whole", "h", "b", "s.1" (label.factor), "j.0:2.1:2"
  /// when sections differ, "pass0" (linear group 0 stays partial).
  std::string name;
  /// Split labels, one factor per section; empty for whole and pass.
  std::vector<SlotLabel> labels;
  /// Index of OpRule::linear, -1 if none.
  int linearGroup = -1;
};

/// One op along one axis.
struct Column {
  std::vector<AxisState> operands;
  std::vector<AxisState> results;
  /// Names of the labels split, for bodies.
  std::vector<std::string> labels;
};

class StrategySpace {
public:
  explicit StrategySpace(const Graph &graph);
  ~StrategySpace();
  StrategySpace(StrategySpace &&) noexcept;

  const Graph &graph() const;
  const TensorStructure &structure(ValueId value) const;
  /// Null: no rule.
  const OpRule *rule(OpId op) const;

  /// Forward ops and sums of cotangents: [0] is "whole", then splits, then
  /// passes.
  const std::vector<Choice> &choices(OpId op) const;
  /// Index of the choice with this name, -1 if none.
  int findChoice(OpId op, std::string_view name) const;
  /// Legal on axes of any size.
  Column column(OpId op, const std::vector<SlotLabel> &labels,
                int linearGroup) const;
  Column column(OpId op, const Choice &choice) const {
    return column(op, choice.labels, choice.linearGroup);
  }
  /// Of `choices(op)[choice]`, made once.
  const Column &columnOf(OpId op, int choice) const;

  /// Backward ops of a forward op, in order.
  const std::vector<OpId> &backwardOps(OpId forward) const;
  /// What a backward op splits when its forward op made this choice; empty when
  /// nothing carries over (it then runs whole, or passes partials on).
  std::vector<SlotLabel> inherited(OpId backward, const Choice &choice) const;

  /// Ops that need no gradient and depend on inputs, buffers, constants and
  /// randomness alone: cloned into each stage that uses them.
  bool isCloned(OpId op) const;
  /// Ops of no rule, with their count: kept whole, listed.
  std::map<std::string, int> opsWithoutRule() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace monarch
