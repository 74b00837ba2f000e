//===- MoveInterpreter.h - moves, element by element ----------------------===//
//
// Runs a sequence of moves on rank-local arrays and counts what is sent. It
// knows index lists, not ranges or costs: each element is carried with its
// global index, a rank can only use what it holds or was sent, and what it was
// sent must be new to it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/layout/Reshard.h"

#include <algorithm>
#include <map>
#include <stdexcept>

namespace monarch::test {

/// What a rank holds: global indices (row-major over the tensor), in order.
struct Holding {
  std::vector<int64_t> indices;
  std::vector<double> values;
};

class MoveInterpreter {
public:
  MoveInterpreter(const TensorStructure &structure, const Mesh &mesh,
                  const OffsetTables &tables)
      : structure(structure), mesh(mesh), tables(tables),
        elementBytes(mesh.size()), sent(mesh.size(), 0), ranks(mesh.size()) {}

  /// Global indices of a rank's block, in the order it holds them.
  std::vector<int64_t> block(const Layout &layout, int64_t rank) const {
    std::vector<int64_t> result{0};
    for (size_t dim = 0; dim < structure.size(); ++dim) {
      std::vector<int64_t> next;
      for (int64_t base : result)
        for (int64_t index : localIndices(structure[dim], int(dim), layout,
                                          mesh, tables, mesh.coordinates(rank)))
          next.push_back(base * structure[dim].size + index);
      result = std::move(next);
    }
    return result;
  }

  /// Takes one move; `sent` then holds the bytes each rank sent in it.
  void run(const Move &move) {
    checkStackRules(move);
    std::fill(sent.begin(), sent.end(), 0);
    std::vector<Holding> next(ranks.size());
    for (int64_t rank = 0; rank < mesh.size(); ++rank)
      next[rank] = after(move, rank);
    if (move.kind == MoveKind::AllReduce)
      countRing(move.axis);
    ranks = std::move(next);
  }

  const TensorStructure &structure;
  const Mesh &mesh;
  const OffsetTables &tables;
  /// A multiple of each axis, so that the chunks of a ring are whole bytes.
  int64_t elementBytes;
  std::vector<int64_t> sent;
  std::vector<Holding> ranks;

private:
  static void require(bool condition, const char *what) {
    if (!condition)
      throw std::logic_error(what);
  }

  void checkStackRules(const Move &move) const {
    for (size_t axis = 0; axis < mesh.axes.size(); ++axis)
      require((move.from.states[axis] == move.to.states[axis]) ==
                  (int(axis) != move.axis),
              "a move changes its axis and no other");
    require(isInnermost(move.from, move.axis), "left from inside a stack");
    require(isInnermost(move.to, move.axis), "entered inside a stack");
    AxisState replicated = AxisState::replicated();
    require(withState(move.from, move.axis, replicated) ==
                withState(move.to, move.axis, replicated),
            "the stacks of the other axes stay");
  }

  std::vector<int64_t> peersOf(int64_t rank, int axis) const {
    std::vector<int64_t> coordinates = mesh.coordinates(rank), peers;
    for (int64_t i = 0; i < mesh.axes[axis].size; ++i) {
      coordinates[axis] = i;
      peers.push_back(mesh.rankInStage(coordinates));
    }
    return peers;
  }

  /// A summand from each peer, added in their order.
  Holding sumOf(const std::vector<int64_t> &peers,
                const std::vector<int64_t> &wanted, int64_t receiver) {
    Holding result{wanted, std::vector<double>(wanted.size(), 0)};
    for (int64_t peer : peers) {
      std::map<int64_t, double> held = contents(peer);
      for (size_t i = 0; i < wanted.size(); ++i) {
        require(held.contains(wanted[i]), "a summand is not held");
        result.values[i] += held[wanted[i]];
        sent[peer] += peer != receiver ? elementBytes : 0;
      }
    }
    return result;
  }

  std::map<int64_t, double> contents(int64_t rank) const {
    std::map<int64_t, double> held;
    for (size_t i = 0; i < ranks[rank].indices.size(); ++i)
      held[ranks[rank].indices[i]] = ranks[rank].values[i];
    return held;
  }

  Holding after(const Move &move, int64_t rank) {
    std::vector<int64_t> wanted = block(move.to, rank);
    std::vector<int64_t> peers = peersOf(rank, move.axis);
    bool isFirst = mesh.coordinates(rank)[move.axis] == 0;
    switch (move.kind) {
    case MoveKind::AllReduce: {
      Holding result = sumOf(peers, wanted, rank);
      require(wanted == ranks[rank].indices, "an all-reduce keeps the block");
      return result;
    }
    case MoveKind::ReduceScatter:
      return sumOf(peers, wanted, rank);
    case MoveKind::AllGather:
    case MoveKind::AllToAll: {
      std::map<int64_t, double> held = contents(rank);
      for (int64_t peer : peers) {
        if (peer == rank)
          continue;
        for (auto [index, value] : contents(peer)) {
          if (!std::binary_search(wanted.begin(), wanted.end(), index))
            continue;
          require(held.emplace(index, value).second, "sent what was there");
          sent[peer] += elementBytes;
        }
      }
      return select(held, wanted);
    }
    case MoveKind::Slice:
      return select(contents(rank), wanted);
    case MoveKind::Zero: {
      Holding result = select(contents(rank), wanted);
      if (!isFirst)
        std::fill(result.values.begin(), result.values.end(), 0);
      return result;
    }
    case MoveKind::Embed: {
      std::map<int64_t, double> held = contents(rank);
      for (int64_t index : wanted)
        held.emplace(index, 0);
      return select(held, wanted);
    }
    }
    throw std::logic_error("unknown kind");
  }

  static Holding select(const std::map<int64_t, double> &held,
                        const std::vector<int64_t> &wanted) {
    Holding result{wanted, {}};
    for (int64_t index : wanted) {
      auto it = held.find(index);
      require(it != held.end(), "an element is not held");
      result.values.push_back(it->second);
    }
    return result;
  }

  /// An all-reduce by ring: the tensor in n chunks, a chunk handed to the next
  /// rank in each of 2 (n-1) steps.
  void countRing(int axis) {
    int64_t n = mesh.axes[axis].size;
    for (int64_t rank = 0; rank < mesh.size(); ++rank) {
      int64_t chunkBytes =
          elementBytes * int64_t(ranks[rank].indices.size()) / n;
      sent[rank] = 0;
      for (int64_t step = 0; step < 2 * (n - 1); ++step)
        sent[rank] += chunkBytes;
    }
  }
};

} // namespace monarch::test
