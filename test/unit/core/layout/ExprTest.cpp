//===- ExprTest.cpp - expressions over shards -----------------------------===//

#include "core/layout/Expr.h"
#include "test/unit/core/layout/RandomCases.h"

#include <catch2/catch.hpp>

using namespace monarch;
using namespace monarch::test;

namespace {

/// A mesh, tables and a few shards of random dims.
struct ShardTable {
  explicit ShardTable(Random &random)
      : mesh(randomMesh(random)), tables(randomTables(random, mesh, 7)) {
    while (shards.size() < 4) {
      TensorStructure structure = randomStructure(random, 2000);
      Layout layout = randomLayout(random, structure, mesh, true);
      for (size_t dim = 0; dim < structure.size(); ++dim)
        shards.push_back(shardOf(structure[dim], int(dim), layout));
    }
  }
  ShardRef randomRef(Random &random) const {
    ShardRef ref{int(random.in(0, int64_t(shards.size()) - 1)), -1, 0};
    if (random.chance(50)) {
      ref.peerAxis = int(random.in(0, int64_t(mesh.axes.size()) - 1));
      ref.peer = random.in(0, mesh.axes[ref.peerAxis].size - 1);
    }
    return ref;
  }

  Mesh mesh;
  OffsetTables tables;
  std::vector<Shard> shards;
};

/// An expression and, apart from it, how to evaluate it.
struct Sample {
  Expr expr;
  int64_t value;
};

} // namespace

static Sample randomExpr(Random &random, const ShardTable &table,
                         const RankView &view, int depth) {
  if (depth == 0 || random.chance(20)) {
    if (random.chance(40)) {
      int64_t value = random.in(-3, 3);
      return {Expr::constant(value), value};
    }
    ShardRef ref = table.randomRef(random);
    return {Expr::size(ref), int64_t(view.indices(ref).size())};
  }
  Sample a = randomExpr(random, table, view, depth - 1);
  Sample b = randomExpr(random, table, view, depth - 1);
  if (random.chance(50))
    return {a.expr + b.expr, a.value + b.value};
  return {a.expr * b.expr, a.value * b.value};
}

TEST_CASE("expressions have one form") {
  Expr a = Expr::size({0, -1, 0}), b = Expr::size({1, 0, 1});
  Expr two = Expr::constant(2), zero = Expr::constant(0);
  REQUIRE(a + b == b + a);
  REQUIRE(a * b == b * a);
  REQUIRE((a + b) * (a + b) == a * a + two * a * b + b * b);
  REQUIRE(a + a == two * a);
  REQUIRE(a + Expr::constant(-1) * a == zero);
  REQUIRE(zero * a == zero);
  REQUIRE(zero.terms.empty());
  REQUIRE(two * two == Expr::constant(4));
  REQUIRE_FALSE(a == b);
  REQUIRE_FALSE(Expr::size({0, -1, 0}) == Expr::size({0, 0, 0}));
}

TEST_CASE("expressions evaluate as their parts do") {
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    ShardTable table(random);
    for (int64_t rank = 0; rank < table.mesh.size(); ++rank) {
      RankView view(table.mesh, table.tables, table.shards,
                    table.mesh.coordinates(rank));
      std::vector<Expr> exprs;
      std::vector<int64_t> values;
      for (int i = 0; i < 5; ++i) {
        Sample sample = randomExpr(random, table, view, 3);
        exprs.push_back(sample.expr);
        values.push_back(sample.value);
      }
      REQUIRE(view.evaluate(exprs) == values);
    }
  }
}

TEST_CASE("a shard is the layout's cut of its dim, also at a peer") {
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    Mesh mesh = randomMesh(random);
    OffsetTables tables = randomTables(random, mesh, 7);
    TensorStructure structure = randomStructure(random, 2000);
    Layout layout = randomLayout(random, structure, mesh, true);
    std::vector<Shard> shards;
    for (size_t dim = 0; dim < structure.size(); ++dim)
      shards.push_back(shardOf(structure[dim], int(dim), layout));
    std::vector<int64_t> own = mesh.coordinates(random.in(0, mesh.size() - 1));
    RankView view(mesh, tables, shards, own);
    for (int dim = 0; dim < int(structure.size()); ++dim) {
      REQUIRE(view.indices({dim, -1, 0}) ==
              localIndices(structure[dim], dim, layout, mesh, tables, own));
      for (int axis = 0; axis < int(mesh.axes.size()); ++axis)
        for (int64_t peer = 0; peer < mesh.axes[axis].size; ++peer) {
          std::vector<int64_t> there = own;
          there[axis] = peer;
          ShardRef ref{dim, axis, peer};
          REQUIRE(view.indices(ref) == localIndices(structure[dim], dim, layout,
                                                    mesh, tables, there));
          REQUIRE(view.size(ref) == int64_t(view.indices(ref).size()));
        }
    }
  }
}

TEST_CASE("index lists give indices or their first positions") {
  int absent = 0, present = 0;
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    ShardTable table(random);
    RankView view(table.mesh, table.tables, table.shards,
                  table.mesh.coordinates(random.in(0, table.mesh.size() - 1)));
    IndexList list;
    std::vector<int64_t> of, in;
    for (int64_t n = random.in(1, 3); n > 0; --n) {
      list.of.push_back(table.randomRef(random));
      for (int64_t index : view.indices(list.of.back()))
        of.push_back(index);
    }
    REQUIRE(view.evaluate(list) == of);
    for (int64_t n = random.in(1, 3); n > 0; --n) {
      list.in.push_back(table.randomRef(random));
      for (int64_t index : view.indices(list.in.back()))
        in.push_back(index);
    }
    std::vector<int64_t> expected;
    for (int64_t index : of) {
      auto it = std::find(in.begin(), in.end(), index);
      expected.push_back(it == in.end() ? -1 : it - in.begin());
      ++(it == in.end() ? absent : present);
    }
    REQUIRE(view.evaluate(list) == expected);
  }
  REQUIRE(absent > 100);
  REQUIRE(present > 100);
}
