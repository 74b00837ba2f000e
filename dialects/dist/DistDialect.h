//===- DistDialect.h - the dist dialect in C++ ----------------------------===//
//
// Generated declarations of the dialect, its attributes and ops, and what tells
// global from local tensors.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dialects/aten/AtenDialect.h"
#include "dialects/dist/CoreTypes.h"

#include "mlir/IR/SymbolTable.h"

namespace monarch::dist {

/// A tensor of the graph under a layout, which is its encoding.
bool isGlobal(mlir::Type type);
/// A tensor that one rank holds.
bool isLocal(mlir::Type type);

} // namespace monarch::dist

#include "dialects/dist/DistDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/dist/DistAttrs.h.inc"

#define GET_OP_CLASSES
#include "dialects/dist/DistOps.h.inc"
