//===- KernelGroups.h - which ops run as one kernel -----------------------===//
//
// Groups of pointwise ops and reductions of one phase, and what each reads and
// writes. A group never spans a product: two ops join only where every path
// between them stays inside.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "planner/work/ValueClasses.h"
#include "planner/work/Work.h"

#include <set>

namespace monarch::planner {

class KernelGroups {
public:
  KernelGroups(const Graph &graph, const ValueClasses &classes,
               const KernelStyle &style);

  /// The op that stands for this op's group: the first of it.
  OpId group(OpId op) const { return leader[op]; }
  /// Ops of the group that `leader` stands for, ascending.
  const std::vector<OpId> &members(OpId leader) const { return groups[leader]; }
  /// Bytes that the group reads and writes, by storage.
  struct Access {
    ValueId value;
    int64_t bytes;
  };
  std::vector<Access> accesses(OpId leader) const;
  /// Storage that the group reads from outside.
  std::vector<ValueId> inputs(OpId leader) const;
  /// Runs on the device: not a view, not merged away.
  bool isKernel(OpId op) const;
  /// A value inside a fused group that no other forward op sees.
  bool isInternal(ValueId value) const;
  /// The same, made again by the backward: all but masks, which are drawn once.
  bool isMadeAgain(ValueId value) const;

private:
  bool mayFuse(OpId op) const;
  bool isWide(OpId op) const;
  void joinSiblings(const std::vector<int> &depth);
  std::string homeModule(OpId op) const;
  bool isOneNorm(OpId producer, OpId op) const;
  bool staysInside(OpId producer, OpId reader, ValueId value) const;
  void join(OpId a, OpId b);
  OpId find(OpId op) const;

  const Graph &graph;
  const ValueClasses &classes;
  Fusion fusion;
  std::vector<OpId> leader;
  std::vector<std::vector<OpId>> groups;
  /// Modules that normalise.
  std::set<std::string> norms;
  bool hasOwnModules;
  /// Storage -> ops that read it.
  std::vector<std::vector<OpId>> readers;
};

} // namespace monarch::planner
