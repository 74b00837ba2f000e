//===- GlobalGraph.h - the graph that a global-form module computes -------===//
//
// Reads a dist module before `localize`, with reshards and transfers as
// identity: which op reads which tensor, whatever the layouts. Where a program
// computes something else than its graph, this tells wiring (the graphs differ)
// from local expansions (they are equal).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/graph/Graph.h"

#include "mlir/IR/BuiltinOps.h"

namespace monarch {

/// `graph` with the ops as the module has them: names, arguments and operands.
/// Ops that no stage runs stay as they are.
Expected<Graph> globalGraph(mlir::ModuleOp module, const Graph &graph);

} // namespace monarch
