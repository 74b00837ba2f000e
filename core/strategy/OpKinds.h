//===- OpKinds.h - ops that share rule, structure and labels --------------===//
//
// A model repeats its layers. Ops of one name, one list of literals and one
// list of port types ask the registry once; those that also have one structure
// are labelled once; groups of such ops that share values alike are enumerated
// once.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/strategy/LabelGroup.h"

#include <deque>

namespace monarch {

class OpKinds {
public:
  explicit OpKinds(const Graph &graph);

  const TensorStructure &structure(ValueId value) const {
    return structures[value];
  }
  const OpKind &kind(OpId op) const { return kinds[kindOf[op]]; }
  /// The group of these ops, the forward op first.
  const LabelGroup &group(const std::vector<OpId> &ops);

private:
  void findRules();
  void labelOps();

  const Graph &graph;
  std::deque<std::optional<OpRule>> rules;
  std::vector<const OpRule *> ruleOfOp;
  std::vector<TensorStructure> structures;
  std::deque<OpKind> kinds;
  std::vector<int> kindOf;
  std::deque<LabelGroup> groups;
  std::map<std::vector<int>, int> groupByKey;
};

} // namespace monarch
