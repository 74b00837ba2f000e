//===- WriteMoves.h - from a reshard to local instructions ----------------===//
//
// Each move becomes: pack (select what goes to each peer, flatten,
// concatenate), one collective on flat buffers, unpack (split, shape,
// concatenate, put in order). Packing is left out where the buffer already lies
// as it must.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/layout/Reshard.h"
#include "core/registry/Lowering.h"

namespace monarch::planner {

/// Local sizes of a tensor of this structure under a layout.
std::vector<Expr> localShape(RoleWriter &writer,
                             const TensorStructure &structure,
                             const Layout &layout);

/// Applies the moves in order to a local tensor and returns the result;
/// consecutive all-reduces become one over all their axes. The operand is left
/// as it is unless it may be overwritten.
Local writeMoves(RoleWriter &writer, const Mesh &mesh,
                 const TensorStructure &structure,
                 const std::vector<Move> &moves, Local tensor,
                 bool mayOverwrite = false);

/// The tensor itself when it lies contiguous, else a contiguous copy.
Local contiguous(RoleWriter &writer, Local tensor);

} // namespace monarch::planner
