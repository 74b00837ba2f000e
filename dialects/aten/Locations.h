//===- Locations.h - where an op comes from -------------------------------===//
//
// Module path and source line of a graph's op as an MLIR location: the path as
// a name, the line as a place in a file, fused.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/graph/Graph.h"

#include "mlir/IR/Location.h"

namespace monarch::aten {

mlir::Location locationOf(const Op &op, mlir::MLIRContext *context);
/// Sets `module` and `source` of the op.
void readLocation(mlir::Location location, Op &op);

} // namespace monarch::aten
