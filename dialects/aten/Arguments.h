//===- Arguments.h - literals of calls as attributes ----------------------===//
//
// How arguments of ATen schemas are written in IR, shared by aten and dist:
// `operand 0`, `operands [0, none]`, `sizes_of 0`, `size_of 0, 1`,
// `sizes_along 1`, `none`, and builtin attributes for the rest.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/graph/Graph.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpImplementation.h"

namespace monarch::aten {

/// bool is i1, uint8 is ui8; the other integers are signless.
mlir::Type elementType(DType type, mlir::MLIRContext *context);
std::optional<DType> dtypeOf(mlir::Type type);

mlir::Attribute attributeOf(const Arg &arg, mlir::MLIRContext *context);
/// Nothing for attributes that are no argument.
std::optional<Arg> argOf(mlir::Attribute attribute);

/// `[argument, ...]`.
void printArguments(mlir::OpAsmPrinter &printer, mlir::Operation *op,
                    mlir::ArrayAttr arguments);
mlir::ParseResult parseArguments(mlir::OpAsmParser &parser,
                                 mlir::ArrayAttr &arguments);

} // namespace monarch::aten
