//===- AtenDialect.h - the aten dialect in C++ ----------------------------===//
//
// Generated declarations of the dialect, its attributes and ops.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dialects/aten/Arguments.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/aten/AtenDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/aten/AtenAttrs.h.inc"

#define GET_OP_CLASSES
#include "dialects/aten/AtenOps.h.inc"
