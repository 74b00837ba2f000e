//===- Reshard.h - from one layout to another, at the fewest bytes --------===//
//
// A reshard is a sequence of moves on one axis each. Candidates go through the
// states {source, target, replicated} of each axis; the cheapest by exact bytes
// sent, summed over the ranks of the stage, wins, then the fewer collectives,
// then the move names. Bytes are those of `bytesSent` (one table, used by
// planner, verifier and runtime).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/layout/Layout.h"

#include <string_view>
#include <tuple>

namespace monarch {

/// Kinds that leave the same state stand in the order of their names.
enum class MoveKind : uint8_t {
  AllReduce,     // P -> R
  ReduceScatter, // P -> S
  AllGather,     // S -> R
  AllToAll,      // S -> S' on another dim
  Slice,         // R -> S, free
  Zero,          // R -> P, free: zeros off coordinate 0
  Embed          // S -> P, free: the block in zeros
};
std::string_view toString(MoveKind kind);
bool isCollective(MoveKind kind);

struct Move {
  int axis = 0;
  MoveKind kind = MoveKind::AllReduce;
  Layout from;
  Layout to;
  bool operator==(const Move &) const = default;
};

/// The cheapest sequence; empty when from == to. A path always exists: through
/// replicated. Costs are counted in elements, which the width scales alike; an
/// all-reduce counts 2 (n-1) S per group, unrounded. Both layouts fit.
std::vector<Move> reshard(const TensorStructure &structure, const Layout &from,
                          const Layout &to, const Mesh &mesh,
                          const OffsetTables &tables);

/// `reshard` on one mesh, remembered: a graph asks the same question for each
/// of its layers. Not for use by two threads at once.
class ReshardCache {
public:
  /// Both must outlive the cache and stay as they are.
  ReshardCache(const Mesh &mesh, const OffsetTables &tables)
      : mesh(mesh), tables(tables) {}
  /// The reference stays valid as long as the cache.
  const std::vector<Move> &get(const TensorStructure &structure,
                               const Layout &from, const Layout &to);

private:
  const Mesh &mesh;
  const OffsetTables &tables;
  std::map<std::tuple<Layout, Layout, TensorStructure>, std::vector<Move>>
      known;
};

/// Bytes that one rank sends in one move of a tensor of this structure.
int64_t bytesSent(const Move &move, const TensorStructure &structure,
                  const Mesh &mesh, const OffsetTables &tables,
                  const std::vector<int64_t> &coordinates,
                  int64_t elementBytes);

//===- Bytes of collectives: the one table --------------------------------===//
// n ranks; sizes are exact, taken from the tensors or split sizes at the call.

/// Ring all-reduce of a tensor of S bytes: floor(2 (n-1) S / n).
int64_t allReduceBytes(int64_t tensorBytes, int64_t ranks);
/// All-gather: the own block once to each other rank.
int64_t allGatherBytes(int64_t ownBytes, int64_t ranks);
/// Reduce-scatter and all-to-all: what goes to the others (`own` is the rank's
/// index among the peers).
int64_t exchangeBytes(const std::vector<int64_t> &sendBytes, int64_t own);

} // namespace monarch
