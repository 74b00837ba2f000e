//===- InstructionCost.h - picoseconds of one instruction -----------------===//
//
// A call is a roofline on its local shapes: the longer of FLOPs over the rate
// that the device sustains and bytes over its memory bandwidth, plus a launch.
// Views are free. A collective is priced by its group and the bytes that core's
// table says. Used for whole programs and, by the search, for single ops.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/program/Program.h"
#include "core/registry/Rule.h"
#include "planner/cost/Links.h"

namespace monarch::planner {

enum class CostKind : uint8_t { Compute, Collective, Send };

struct InstructionCost {
  CostKind kind = CostKind::Compute;
  /// Time that the stage is busy with it.
  int64_t picoseconds = 0;
  /// Send: what is on the link after that.
  Links::Hop hop;
};

/// Values and sizes of one role at one rank; shapes are evaluated once.
class RoleView {
public:
  RoleView(const Role &role, const Mesh &mesh, const OffsetTables &tables,
           std::vector<int64_t> coordinates);
  const TensorType &type(int32_t value) const;
  int64_t bytes(int32_t value) const;
  int64_t evaluate(const Expr &expr) const { return view.evaluate(expr); }

  const Role &role;

private:
  RankView view;
  mutable std::vector<std::optional<TensorType>> types;
};

class InstructionPricer {
public:
  InstructionPricer(const Cluster &cluster, const Mesh &mesh,
                    OptimizerKind optimizer)
      : cluster(cluster), mesh(mesh), optimizer(optimizer),
        links(cluster, mesh) {}

  InstructionCost price(const Instruction &instruction, const RoleView &view,
                        int stage) const;
  int64_t callPicoseconds(const std::string &name,
                          const std::vector<TensorType> &operands,
                          const std::vector<TensorType> &results) const;

private:
  int64_t collectivePicoseconds(const Instruction &instruction,
                                const RoleView &view, int stage) const;
  int64_t roofline(int64_t flops, int64_t bytes, DType type) const;

  const Cluster &cluster;
  const Mesh &mesh;
  OptimizerKind optimizer;
  Links links;
};

} // namespace monarch::planner
