//===- OpCosts.h - picoseconds of one op or reshard -----------------------===//
//
// Lowers an op under given layouts, or a reshard, into a scratch role, exactly
// as resolve does, and prices what was written. So the search weighs what will
// be priced, local bodies and their collectives included. Results are kept by
// structure: the layers of a model ask once.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "planner/cost/InstructionCost.h"
#include "planner/resolve/DeriveLayouts.h"

#include <deque>
#include <unordered_map>

namespace monarch::planner {

/// What is partial made whole.
Layout dualOf(Layout layout);

/// Layouts as numbers, so that the search compares and looks up fast.
class LayoutNumbers {
public:
  int of(const Layout &layout);
  const Layout &operator[](int number) const { return layouts[number]; }
  /// The number of a layout's dual.
  int dual(int number);

private:
  std::map<Layout, int> numbers;
  std::deque<Layout> layouts;
  /// -1: not asked for yet.
  std::vector<int> duals;
};

class OpCosts {
public:
  /// Everything must outlive it.
  OpCosts(const StrategySpace &space, const Cluster &cluster, const Mesh &mesh,
          OptimizerKind optimizer);

  int64_t opPicoseconds(OpId op, const OpLayouts &layouts) const;
  /// Between two layouts, by number; 0 where no instruction is needed.
  int64_t reshardPicoseconds(ValueId value, int from, int to) const;
  LayoutNumbers &numbers() const { return layoutNumbers; }
  /// Bytes of a value on its slowest rank.
  int64_t localBytes(ValueId value, const Layout &layout) const;

private:
  int64_t price(const Role &role,
                const std::vector<Instruction> &instructions) const;

  const StrategySpace &space;
  const Mesh &mesh;
  InstructionPricer pricer;
  mutable LayoutNumbers layoutNumbers;
  /// Per value: values of one number have equal structure and type.
  std::vector<int> structureNumbers;
  mutable std::unordered_map<uint64_t, int64_t> reshards;
};

} // namespace monarch::planner
