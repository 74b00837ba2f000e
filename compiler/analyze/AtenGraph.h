//===- AtenGraph.h - joint graphs as aten modules, and back ---------------===//
//
// The two forms hold the same facts: graphOf(toAten(g)) == g, byte for byte as
// `writeGraph` has it, where values are numbered in the order of their
// definition (as import numbers them).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/graph/Graph.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace monarch {

mlir::OwningOpRef<mlir::ModuleOp> toAten(const Graph &graph,
                                         mlir::MLIRContext &context);

/// The graph of a verified module; an error when it holds none or several.
Expected<Graph> graphOf(mlir::ModuleOp module);

} // namespace monarch
