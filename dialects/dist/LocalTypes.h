//===- LocalTypes.h - values and arguments of programs in dist ------------===//
//
// What `partition` writes and `emit` reads back: local tensor types with sizes
// that depend on the rank, and arguments of calls, whose integers may.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dialects/dist/DistDialect.h"

namespace monarch::dist {

/// `tensor<4x8xf32>`, or `tensor<?x8xf32, #dist.sizes<"s3", 8>>`.
mlir::RankedTensorType localType(DType type, const std::vector<Expr> &shape,
                                 mlir::MLIRContext *context);
/// All sizes of a local tensor.
std::vector<Expr> shapeOf(mlir::RankedTensorType type);

mlir::Attribute attributeOf(const CallArg &arg, mlir::MLIRContext *context);
/// Nothing for attributes that are no argument of a call.
std::optional<CallArg> callArgOf(mlir::Attribute attribute);

} // namespace monarch::dist
