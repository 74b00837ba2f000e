//===- Moves.cpp - names of moves and the bytes that they send ------------===//

#include "core/layout/Blocks.h"
#include "core/layout/Reshard.h"

#include <numeric>

using namespace monarch;

std::string_view monarch::toString(MoveKind kind) {
  switch (kind) {
  case MoveKind::AllReduce:
    return "all_reduce";
  case MoveKind::ReduceScatter:
    return "reduce_scatter";
  case MoveKind::AllGather:
    return "all_gather";
  case MoveKind::AllToAll:
    return "all_to_all";
  case MoveKind::Slice:
    return "slice";
  case MoveKind::Zero:
    return "zero";
  case MoveKind::Embed:
    return "embed";
  }
  return "";
}

bool monarch::isCollective(MoveKind kind) {
  return kind != MoveKind::Slice && kind != MoveKind::Zero &&
         kind != MoveKind::Embed;
}

//===----------------------------------------------------------------------===//
// Bytes
//===----------------------------------------------------------------------===//

int64_t monarch::allReduceBytes(int64_t tensorBytes, int64_t ranks) {
  return 2 * (ranks - 1) * tensorBytes / ranks;
}

int64_t monarch::allGatherBytes(int64_t ownBytes, int64_t ranks) {
  return (ranks - 1) * ownBytes;
}

int64_t monarch::exchangeBytes(const std::vector<int64_t> &sendBytes,
                               int64_t own) {
  return std::accumulate(sendBytes.begin(), sendBytes.end(), int64_t(0)) -
         sendBytes[own];
}

/// Elements that a rank under one layout and a rank under another both hold.
static int64_t overlapElements(const TensorStructure &structure,
                               const Layout &a,
                               const std::vector<int64_t> &coordinatesA,
                               const Layout &b,
                               const std::vector<int64_t> &coordinatesB,
                               const Mesh &mesh, const OffsetTables &tables) {
  int64_t product = 1;
  for (size_t dim = 0; dim < structure.size(); ++dim)
    product *= detail::overlapSize(
        structure[dim],
        detail::factorRanges(structure[dim], detail::cutsOf(dim, a), mesh,
                             tables, coordinatesA),
        detail::factorRanges(structure[dim], detail::cutsOf(dim, b), mesh,
                             tables, coordinatesB));
  return product;
}

static int64_t localElements(const TensorStructure &structure,
                             const Layout &layout, const Mesh &mesh,
                             const OffsetTables &tables,
                             const std::vector<int64_t> &coordinates) {
  int64_t product = 1;
  for (int64_t size : localShape(structure, layout, mesh, tables, coordinates))
    product *= size;
  return product;
}

int64_t monarch::bytesSent(const Move &move, const TensorStructure &structure,
                           const Mesh &mesh, const OffsetTables &tables,
                           const std::vector<int64_t> &coordinates,
                           int64_t elementBytes) {
  int64_t ranks = mesh.axes[move.axis].size;
  switch (move.kind) {
  case MoveKind::AllReduce:
    return allReduceBytes(elementBytes * localElements(structure, move.from,
                                                       mesh, tables,
                                                       coordinates),
                          ranks);
  case MoveKind::AllGather:
    return allGatherBytes(elementBytes * localElements(structure, move.from,
                                                       mesh, tables,
                                                       coordinates),
                          ranks);
  case MoveKind::ReduceScatter:
  case MoveKind::AllToAll: {
    std::vector<int64_t> sendBytes;
    std::vector<int64_t> peer = coordinates;
    for (int64_t i = 0; i < ranks; ++i) {
      peer[move.axis] = i;
      sendBytes.push_back(elementBytes * overlapElements(structure, move.from,
                                                         coordinates, move.to,
                                                         peer, mesh, tables));
    }
    return exchangeBytes(sendBytes, coordinates[move.axis]);
  }
  case MoveKind::Slice:
  case MoveKind::Zero:
  case MoveKind::Embed:
    return 0;
  }
  return 0;
}
