//===- Partition.h - a resolved plan as a dist module ---------------------===//
//
// Writes down what resolve decided: one role per stage, in each segment the
// steps on global tensors with their local expansions. Nothing is added: the
// instructions are those of `resolved.program`, in their order.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "planner/resolve/Resolve.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace monarch {

/// The global form; pass `localize` makes the local one of it.
mlir::OwningOpRef<mlir::ModuleOp> partition(const planner::Resolved &resolved,
                                            const Graph &graph,
                                            mlir::MLIRContext &context);

} // namespace monarch
