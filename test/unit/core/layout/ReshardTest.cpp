//===- ReshardTest.cpp - move sequences, against an interpreter -----------===//

#include "core/layout/Reshard.h"
#include "test/unit/core/layout/MoveInterpreter.h"
#include "test/unit/core/layout/RandomCases.h"

#include <catch2/catch.hpp>

#include <set>

using namespace monarch;
using namespace monarch::test;

namespace {

struct ReshardCase {
  ReshardCase(Random &random, const Mesh &mesh, int64_t maxElements)
      : mesh(mesh), structure(randomStructure(random, maxElements)),
        from(randomLayout(random, structure, mesh, true)),
        to(randomLayout(random, structure, mesh, true)) {
    if (random.chance(70))
      tables = randomTables(random, mesh, 7);
  }
  Mesh mesh;
  TensorStructure structure;
  OffsetTables tables;
  Layout from, to;
};

} // namespace

/// The part of a rank's coordinates that picks its summand.
static std::vector<int64_t>
partOf(const Layout &layout, std::vector<int64_t> coordinates, bool partial) {
  for (size_t axis = 0; axis < coordinates.size(); ++axis)
    if (layout.states[axis].isPartial() != partial)
      coordinates[axis] = 0;
  return coordinates;
}

/// Puts random summands that add up to `whole` on the ranks.
static void place(MoveInterpreter &interpreter, const Layout &layout,
                  const std::vector<double> &whole, Random &random) {
  std::map<std::vector<int64_t>, std::vector<double>> summands;
  const Mesh &mesh = interpreter.mesh;
  for (int64_t rank = 0; rank < mesh.size(); ++rank)
    summands[partOf(layout, mesh.coordinates(rank), true)] = {};
  std::vector<double> rest = whole;
  for (auto &[part, values] : summands) {
    bool isLast = part == summands.rbegin()->first;
    for (double &value : rest) {
      values.push_back(isLast ? value : double(random.in(-50, 50)));
      value -= values.back();
    }
  }
  for (int64_t rank = 0; rank < mesh.size(); ++rank) {
    Holding &holding = interpreter.ranks[rank];
    holding.indices = interpreter.block(layout, rank);
    for (int64_t index : holding.indices)
      holding.values.push_back(
          summands[partOf(layout, mesh.coordinates(rank), true)][index]);
  }
}

/// Each rank has its block, and the summands of each block add up to `whole`.
static bool holds(const MoveInterpreter &interpreter, const Layout &layout,
                  const std::vector<double> &whole) {
  const Mesh &mesh = interpreter.mesh;
  std::map<std::vector<int64_t>, std::vector<double>> sums;
  for (int64_t rank = 0; rank < mesh.size(); ++rank) {
    const Holding &holding = interpreter.ranks[rank];
    if (holding.indices != interpreter.block(layout, rank))
      return false;
    std::vector<double> &sum =
        sums[partOf(layout, mesh.coordinates(rank), false)];
    sum.resize(holding.values.size(), 0);
    for (size_t i = 0; i < sum.size(); ++i)
      sum[i] += holding.values[i];
  }
  for (auto &[part, sum] : sums) {
    std::vector<int64_t> indices =
        interpreter.block(layout, mesh.rankInStage(part));
    for (size_t i = 0; i < sum.size(); ++i)
      if (sum[i] != whole[indices[i]])
        return false;
  }
  return true;
}

static int64_t totalBytes(const Move &move, const ReshardCase &c) {
  int64_t sum = 0;
  for (int64_t rank = 0; rank < c.mesh.size(); ++rank)
    sum += bytesSent(move, c.structure, c.mesh, c.tables,
                     c.mesh.coordinates(rank), c.mesh.size());
  return sum;
}

static int64_t totalBytes(const std::vector<Move> &moves,
                          const ReshardCase &c) {
  int64_t sum = 0;
  for (const Move &move : moves)
    sum += totalBytes(move, c);
  return sum;
}

static MoveKind kindOf(const AxisState &a, const AxisState &b) {
  if (a.isPartial())
    return b.isSplit() ? MoveKind::ReduceScatter : MoveKind::AllReduce;
  if (a.isReplicated())
    return b.isSplit() ? MoveKind::Slice : MoveKind::Zero;
  return b.isSplit()     ? MoveKind::AllToAll
         : b.isPartial() ? MoveKind::Embed
                         : MoveKind::AllGather;
}

/// All axes to replicated, innermost first, then into the target's order.
static std::vector<Move> throughReplicated(const ReshardCase &c) {
  std::vector<Move> moves;
  Layout layout = c.from;
  auto take = [&](int axis, const AxisState &state) {
    if (layout.states[axis] == state)
      return;
    Layout next = withState(layout, axis, state);
    moves.push_back({axis, kindOf(layout.states[axis], state), layout, next});
    layout = next;
  };
  for (auto axis = c.from.order.rbegin(); axis != c.from.order.rend(); ++axis)
    take(*axis, AxisState::replicated());
  for (int axis : c.to.order)
    take(axis, c.to.states[axis]);
  REQUIRE(layout == c.to);
  return moves;
}

/// "0 all_gather", ... in order.
using Names = std::vector<std::string>;

static Names namesOf(const std::vector<Move> &moves) {
  Names names;
  for (const Move &move : moves)
    names.push_back(std::to_string(move.axis) + " " +
                    std::string(toString(move.kind)));
  return names;
}

static int numCollectives(const std::vector<Move> &moves) {
  return int(std::count_if(moves.begin(), moves.end(), [](const Move &move) {
    return isCollective(move.kind);
  }));
}

/// Uniform-cost search on layouts, each move priced rank by rank.
static std::vector<Move> exhaustive(const ReshardCase &c) {
  using Label = std::tuple<int64_t, int, Names, Layout>;
  std::set<Label> open{{0, 0, {}, c.from}};
  std::map<Layout, std::vector<Move>> paths{{c.from, {}}};
  std::set<Layout> closed;
  std::map<Label, std::vector<Move>> pathOf{{*open.begin(), {}}};
  while (true) {
    Label label = *open.begin();
    open.erase(open.begin());
    auto [bytes, collectives, names, layout] = label;
    std::vector<Move> path = pathOf.at(label);
    if (layout == c.to)
      return path;
    if (!closed.insert(layout).second)
      continue;
    for (int axis = 0; axis < int(c.mesh.axes.size()); ++axis) {
      if (!isInnermost(layout, axis))
        continue;
      for (const AxisState &state :
           {c.from.states[axis], c.to.states[axis], AxisState::replicated()}) {
        if (state == layout.states[axis])
          continue;
        Move move{axis, kindOf(layout.states[axis], state), layout,
                  withState(layout, axis, state)};
        if (move.kind == MoveKind::AllToAll &&
            layout.states[axis].dim == state.dim)
          continue;
        Names longer = names;
        longer.push_back(namesOf({move})[0]);
        Label next{bytes + totalBytes(move, c),
                   collectives + isCollective(move.kind), longer, move.to};
        open.insert(next);
        std::vector<Move> &moves = pathOf[next];
        moves = path;
        moves.push_back(move);
      }
    }
  }
}

TEST_CASE("bytes of collectives are those of the named algorithms") {
  REQUIRE(allReduceBytes(10, 4) == 15);
  REQUIRE(allReduceBytes(10, 3) == 13);
  REQUIRE(allGatherBytes(10, 4) == 30);
  REQUIRE(exchangeBytes({1, 2, 4}, 1) == 5);
}

TEST_CASE("each kind of move on one axis") {
  Mesh mesh = meshOf({2});
  TensorStructure structure = {plainDim(4), plainDim(6)};
  Layout r = Layout::replicated(1);
  Layout p = withState(r, 0, AxisState::partial());
  Layout s0 = withState(r, 0, AxisState::split(0, {0}));
  Layout s1 = withState(r, 0, AxisState::split(1, {0}));
  auto check = [&](const Layout &from, const Layout &to, MoveKind kind,
                   int64_t bytes) {
    std::vector<Move> moves = reshard(structure, from, to, mesh, {});
    REQUIRE(moves == std::vector<Move>{{0, kind, from, to}});
    REQUIRE(bytesSent(moves[0], structure, mesh, {}, {1}, 4) == bytes);
  };
  check(p, r, MoveKind::AllReduce, 4 * 24);
  check(p, s0, MoveKind::ReduceScatter, 4 * 12);
  check(s0, r, MoveKind::AllGather, 4 * 12);
  check(s0, s1, MoveKind::AllToAll, 4 * 6);
  check(r, s1, MoveKind::Slice, 0);
  check(r, p, MoveKind::Zero, 0);
  check(s1, p, MoveKind::Embed, 0);
  REQUIRE(reshard(structure, p, p, mesh, {}).empty());
}

TEST_CASE("a parameter split by data inside tensor is gathered alone") {
  // The stack [tp, dp] on a matrix's rows: only dp leaves, at its quarter.
  Mesh mesh = meshOf({2, 2});
  TensorStructure structure = {plainDim(8), plainDim(3)};
  Layout inUse = withState(Layout::replicated(2), 1, AxisState::split(0, {0}));
  Layout atRest = withState(inUse, 0, AxisState::split(0, {0}));
  std::vector<Move> moves = reshard(structure, atRest, inUse, mesh, {});
  REQUIRE(namesOf(moves) == Names{"0 all_gather"});
  REQUIRE(bytesSent(moves[0], structure, mesh, {}, {0, 0}, 1) == 6);
  // Its gradient comes back by one reduce-scatter.
  Layout gradient = withState(inUse, 0, AxisState::partial());
  REQUIRE(namesOf(reshard(structure, gradient, atRest, mesh, {})) ==
          Names{"0 reduce_scatter"});
  // In the mesh's order, [dp, tp], tp must leave first.
  Layout meshOrder = atRest;
  meshOrder.order = {0, 1};
  REQUIRE(namesOf(reshard(structure, meshOrder, inUse, mesh, {})) ==
          Names{"1 all_gather", "0 all_gather", "1 slice"});
}

TEST_CASE("reshards move the right elements and count what they send") {
  std::map<std::string, int> histogram;
  for (uint32_t seed = 1; seed <= 2000; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    Mesh mesh = randomMesh(random);
    ReshardCase c(random, mesh, 600);
    CAPTURE(toString(c.from), toString(c.to));
    std::vector<Move> moves =
        reshard(c.structure, c.from, c.to, c.mesh, c.tables);
    std::vector<double> whole(1);
    for (const DimStructure &dim : c.structure)
      whole.resize(whole.size() * dim.size);
    for (double &value : whole)
      value = double(random.in(-1000, 1000));
    MoveInterpreter interpreter(c.structure, c.mesh, c.tables);
    place(interpreter, c.from, whole, random);
    REQUIRE(holds(interpreter, c.from, whole));
    Layout layout = c.from;
    for (const Move &move : moves) {
      CAPTURE(toString(move.kind), toString(move.from), toString(move.to));
      REQUIRE(move.from == layout);
      layout = move.to;
      REQUIRE_NOTHROW(interpreter.run(move));
      for (int64_t rank = 0; rank < c.mesh.size(); ++rank)
        REQUIRE(bytesSent(move, c.structure, c.mesh, c.tables,
                          c.mesh.coordinates(rank),
                          interpreter.elementBytes) == interpreter.sent[rank]);
      ++histogram[std::string(toString(move.kind))];
    }
    REQUIRE(layout == c.to);
    REQUIRE(holds(interpreter, c.to, whole));
    REQUIRE(totalBytes(moves, c) <= totalBytes(throughReplicated(c), c));
  }
  for (int kind = 0; kind <= int(MoveKind::Embed); ++kind)
    REQUIRE(histogram[std::string(toString(MoveKind(kind)))] > 50);
}

TEST_CASE("reshards are the first of the cheapest by exhaustive search") {
  int longest = 0;
  for (uint32_t seed = 1; seed <= 3000; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    Mesh mesh = randomMesh(random);
    ReshardCase c(random, mesh, 300);
    CAPTURE(toString(c.from), toString(c.to));
    std::vector<Move> moves =
        reshard(c.structure, c.from, c.to, c.mesh, c.tables);
    std::vector<Move> best = exhaustive(c);
    REQUIRE(totalBytes(moves, c) == totalBytes(best, c));
    REQUIRE(numCollectives(moves) == numCollectives(best));
    REQUIRE(namesOf(moves) == namesOf(best));
    longest = std::max(longest, int(moves.size()));
  }
  REQUIRE(longest >= 4);
}

TEST_CASE("the cache answers as reshard does") {
  Random random(11);
  Mesh mesh = meshOf({2, 3});
  OffsetTables tables = randomTables(random, mesh, 7);
  TensorStructure structure = {plainDim(6), plainDim(4)};
  ReshardCache cache(mesh, tables);
  for (int i = 0; i < 200; ++i) {
    Layout from = randomLayout(random, structure, mesh, true);
    Layout to = randomLayout(random, structure, mesh, true);
    TensorStructure other = {plainDim(6), plainDim(i % 2 ? 4 : 5)};
    const std::vector<Move> &moves = cache.get(other, from, to);
    REQUIRE(moves == reshard(other, from, to, mesh, tables));
    REQUIRE(&moves == &cache.get(other, from, to));
  }
}

// A search that tried all orders of ten axes would not come back.
TEST_CASE("long stacks are entered and left in one pass") {
  Mesh mesh = meshOf(std::vector<int64_t>(10, 2));
  TensorStructure structure = {plainDim(4096), plainDim(3)};
  Layout whole = Layout::replicated(10), stacked = whole, reversed = whole;
  Layout partial = whole;
  for (int i = 0; i < 10; ++i) {
    stacked = withState(stacked, i, AxisState::split(0, {0}));
    reversed = withState(reversed, 9 - i, AxisState::split(0, {0}));
    partial = withState(partial, i, AxisState::partial());
  }
  auto numMoves = [&](const Layout &from, const Layout &to) {
    return reshard(structure, from, to, mesh, {}).size();
  };
  for (const Layout &stack : {stacked, reversed}) {
    REQUIRE(numMoves(stack, whole) == 10);
    REQUIRE(numMoves(whole, stack) == 10);
    REQUIRE(numMoves(partial, stack) == 10);
    REQUIRE(numMoves(stack, partial) == 10);
  }
  REQUIRE(numMoves(partial, whole) == 10);
}
