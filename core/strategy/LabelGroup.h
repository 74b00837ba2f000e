//===- LabelGroup.h - labels of a forward op and its backward ops ---------===//
//
// A decision is made for a forward op and carries over to its backward: labels
// on the same slot of the same value are one, and so are labels on a slot of a
// value and of its cotangent. Classes of labels under this relation are what a
// choice splits, in the forward op and in each backward op.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/strategy/Labels.h"

namespace monarch {

class LabelGroup {
public:
  /// Ops of one group, the forward op (or a lone op) first; `kinds` of each.
  LabelGroup(const Graph &graph, const std::vector<OpId> &ops,
             const std::vector<const OpKind *> &kinds);

  /// Labels of a member in the classes of these labels of the first; sorted.
  std::vector<int> closure(const std::vector<int> &labels, size_t member) const;
  /// Whole, splits, passes.
  const std::vector<Choice> &choices() const { return allChoices; }
  /// Of the first op under each of its choices.
  const std::vector<Column> &columns() const { return choiceColumns; }
  const OpKind &kind(size_t member) const { return *kinds[member]; }

private:
  void unite(const Graph &graph, const std::vector<OpId> &ops);
  void enumerate();
  void addChoice(Choice choice, const std::vector<int> &labels);

  std::vector<const OpKind *> kinds;
  /// Per member and label: the number of its class.
  std::vector<std::vector<int>> classes;
  std::vector<Choice> allChoices;
  std::vector<Column> choiceColumns;
};

/// "h", "s.1", "j.0:2.1:2", "i+k": see Choice::name.
std::string splitName(const OpKind &kind, const std::vector<int> &labels);

} // namespace monarch
