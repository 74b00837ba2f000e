//===- Emit.h - the program of a dist module ------------------------------===//
//
// Copies a module in local form into the plain structs of `core/program`. What
// resolve priced comes out unchanged: emit(localize(partition(r))) equals
// r.program.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/program/Program.h"

#include "mlir/IR/BuiltinOps.h"

namespace monarch {

/// Of a verified module in local form.
Expected<Program> emit(mlir::ModuleOp module);

} // namespace monarch
