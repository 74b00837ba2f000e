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

namespace monarch::planner {

class OpCosts {
public:
  /// Everything must outlive it.
  OpCosts(const StrategySpace &space, const Cluster &cluster, const Mesh &mesh,
          OptimizerKind optimizer)
      : space(space), mesh(mesh), pricer(cluster, mesh, optimizer) {}

  int64_t opPicoseconds(OpId op, const OpLayouts &layouts) const;
  /// From the op's own layout to another; 0 where no instruction is needed.
  int64_t reshardPicoseconds(ValueId value, const Layout &from,
                             const Layout &to) const;
  /// Bytes of a value on its slowest rank.
  int64_t localBytes(ValueId value, const Layout &layout) const;

private:
  int64_t price(const Role &role,
                const std::vector<Instruction> &instructions) const;

  const StrategySpace &space;
  const Mesh &mesh;
  InstructionPricer pricer;
  using ReshardKey = std::tuple<TensorStructure, DType, Layout, Layout>;
  mutable std::map<ReshardKey, int64_t> reshards;
};

} // namespace monarch::planner
