//===- Uses.h - what each step and segment of a role hands on -------------===//
//
// Steps and segments are regions: what later ones read must leave them as
// results, whose types are known before their bodies are written. Two kinds of
// tensors are followed: the local ones of the program, and the graph's under
// their layouts.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "planner/resolve/Resolve.h"

#include <set>

namespace monarch::parts {

/// A tensor of the graph in one layout, made by a step or a leaf.
struct GlobalTensor {
  ValueId value = None;
  Layout layout;
  /// Read by another step of its segment, or by another segment.
  bool leavesSegment = false;
};

/// Instructions [begin, end) of a segment: those of one step, or (step null)
/// ones that belong to none.
struct Piece {
  const planner::ResolvedStep *step = nullptr;
  size_t begin = 0, end = 0;
  /// Numbers of global tensors read and made.
  std::vector<int> reads, makes;
  /// Local values that other pieces read, ascending.
  std::vector<int32_t> leaving;
};

struct SegmentPieces {
  std::vector<Piece> pieces;
  /// Local values that other segments or the role's roots read, ascending.
  std::vector<int32_t> leaving;
  /// Global tensors that other segments read, ascending.
  std::vector<int> leavingGlobals;
};

struct RolePieces {
  std::vector<GlobalTensor> globals;
  /// Global tensors that no step makes.
  std::vector<int> leaves;
  std::vector<SegmentPieces> segments;
};

RolePieces piecesOf(const Role &role,
                    const std::vector<planner::ResolvedStep> &steps,
                    const planner::Resolved &resolved, const Graph &graph);

} // namespace monarch::parts
