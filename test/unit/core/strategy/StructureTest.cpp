//===- StructureTest.cpp - sections and factors that views and splits make ===//

#include "core/strategy/Structure.h"
#include "core/strategy/Strategies.h"
#include "test/support/GraphBuilder.h"

#include <catch2/catch.hpp>

using namespace monarch;
using namespace monarch::test;

namespace {

using Factors = std::vector<int64_t>;

/// Factors per section.
std::vector<Factors> factorsOf(const StrategySpace &space, ValueId value,
                               int dim) {
  std::vector<Factors> result;
  for (const Section &section : space.structure(value)[dim].sections)
    result.push_back(section.factors);
  return result;
}

const Arg first = OperandArg{0}, second = OperandArg{1}, third = OperandArg{2};

ValueId view(GraphBuilder &b, ValueId x, GraphBuilder::Shape shape) {
  return b.op("aten::view", {x}, {first, ResultSizes{0}}, shape);
}

ValueId transpose(GraphBuilder &b, ValueId x, int64_t i, int64_t j) {
  GraphBuilder::Shape shape = b.graph.values[x].shape;
  std::swap(shape[i], shape[j]);
  return b.op("aten::transpose.int", {x}, {first, i, j}, shape);
}

ValueId mm(GraphBuilder &b, ValueId x, ValueId w) {
  return b.op("aten::mm", {x, w}, {first, second},
              {b.graph.values[x].shape[0], b.graph.values[w].shape[1]});
}

} // namespace

TEST_CASE("row-major groups are the smallest runs with equal products") {
  auto groups = rowMajorGroups({2, 3, 1, 4, 5}, {6, 1, 4, 5});
  REQUIRE(groups.size() == 3);
  CHECK(groups[0].operandDims == std::vector<int>{0, 1});
  CHECK(groups[0].resultDims == std::vector<int>{0});
  CHECK(groups[1].operandDims == std::vector<int>{3});
  CHECK(groups[1].resultDims == std::vector<int>{2});
  CHECK(groups[2].isOneToOne());
  CHECK(rowMajorGroups({1, 1}, {}).empty());
  CHECK(rowMajorGroups({0, 4}, {4, 0}).empty());
  CHECK(rowMajorGroups({4, 6}, {6, 4}).size() == 1);
}

TEST_CASE("a fused projection has three sections of heads and head dims") {
  constexpr int64_t B = 2, S = 5, H = 3, D = 4, E = H * D;
  GraphBuilder b;
  ValueId x = b.input("x", {B, S, E}, DType::Float64);
  ValueId w = b.parameter("qkv", {E, 3 * E});
  ValueId rows = view(b, x, {B * S, E});
  ValueId flat = mm(b, rows, w);
  ValueId fused = view(b, flat, {B, S, 3 * E});
  std::vector<ValueId> parts = b.ops(
      "aten::split_with_sizes", {fused}, {first, ResultsSizes{2}, int64_t(2)},
      {GraphBuilder::Shape{B, S, E}, GraphBuilder::Shape{B, S, E},
       GraphBuilder::Shape{B, S, E}});
  for (ValueId &part : parts)
    part = transpose(b, view(b, part, {B, S, H, D}), 1, 2);
  Graph graph = b.finish();
  StrategySpace space(graph);
  REQUIRE(space.opsWithoutRule().empty());

  std::vector<Factors> three(3, Factors{H, D});
  CHECK(factorsOf(space, w, 1) == three);
  CHECK(factorsOf(space, flat, 1) == three);
  CHECK(factorsOf(space, fused, 2) == three);
  CHECK(factorsOf(space, flat, 0) == std::vector<Factors>{{B, S}});
  CHECK(factorsOf(space, w, 0) == std::vector<Factors>{{E}});
  CHECK(factorsOf(space, parts[1], 1) == std::vector<Factors>{{H}});
}

TEST_CASE("repeated key heads give the query heads a factor of repeats") {
  constexpr int64_t B = 2, S = 5, KV = 3, R = 2, D = 4;
  GraphBuilder b;
  ValueId x = b.input("x", {B * S, 7}, DType::Float64);
  ValueId wq = b.parameter("q", {7, KV * R * D});
  ValueId wk = b.parameter("k", {7, KV * D});
  ValueId q = transpose(b, view(b, mm(b, x, wq), {B, S, KV * R, D}), 1, 2);
  ValueId k = transpose(b, view(b, mm(b, x, wk), {B, S, KV, D}), 1, 2);
  k = b.op("aten::unsqueeze", {k}, {first, int64_t(2)}, {B, KV, 1, S, D});
  k = b.op("aten::expand", {k}, {first, ResultSizes{0}, false},
           {B, KV, R, S, D});
  k = view(b, k, {B, KV * R, S, D});
  std::vector<ValueId> out = b.ops("monarch::attention", {q, k, k},
                                   {first, second, third, {}, true, 0.5},
                                   {GraphBuilder::Shape{B, KV * R, S, D},
                                    GraphBuilder::Shape{B, KV * R, S}});
  Graph graph = b.finish();
  StrategySpace space(graph);
  REQUIRE(space.opsWithoutRule().empty());

  CHECK(factorsOf(space, out[0], 1) == std::vector<Factors>{{KV, R}});
  CHECK(factorsOf(space, wq, 1) == std::vector<Factors>{{KV, R, D}});
  CHECK(factorsOf(space, wk, 1) == std::vector<Factors>{{KV, D}});
  CHECK(factorsOf(space, x, 0) == std::vector<Factors>{{B, S}});
}

TEST_CASE("views that cross keep their dims whole") {
  GraphBuilder b;
  ValueId x = b.input("x", {4, 6}, DType::Float64);
  ValueId y = view(b, x, {6, 4});
  Graph graph = b.finish();
  StrategySpace space(graph);
  CHECK(factorsOf(space, x, 0) == std::vector<Factors>{{4}});
  CHECK(factorsOf(space, y, 0) == std::vector<Factors>{{6}});
  REQUIRE(space.choices(0).size() == 2);
  CHECK(space.choices(0)[1].name == "pass0");
}

TEST_CASE("sections exist only where a dim stands alone") {
  constexpr int64_t B = 2, H = 3, D = 8;
  GraphBuilder b;
  ValueId flat = b.input("x", {B, H * D}, DType::Float64);
  ValueId x = view(b, flat, {B, H, D});
  std::vector<ValueId> halves = b.ops(
      "aten::split_with_sizes", {x}, {first, ResultsSizes{2}, int64_t(2)},
      {GraphBuilder::Shape{B, H, D / 2}, GraphBuilder::Shape{B, H, D / 2}});
  Graph graph = b.finish();
  StrategySpace space(graph);
  CHECK(factorsOf(space, x, 2) == std::vector<Factors>{{D / 2}, {D / 2}});
  CHECK(factorsOf(space, flat, 1) == std::vector<Factors>{{H, D}});
  // The view passes heads, not halves.
  CHECK(space.findChoice(0, "g1.0") == -1);
  CHECK(space.findChoice(0, "g1") != -1);
}

TEST_CASE("a slice that leaves one element keeps its dim whole") {
  constexpr int64_t B = 2, S = 6, E = 3;
  GraphBuilder b;
  ValueId x = b.input("x", {B, S, E}, DType::Float64);
  ValueId y =
      b.op("aten::slice.Tensor", {x},
           {first, int64_t(1), int64_t(0), S - 1, int64_t(1)}, {B, S - 1, E});
  ValueId z = b.op("aten::gelu", {x}, {first, std::string("none")}, {B, S, E});
  Graph graph = b.finish();
  StrategySpace space(graph);
  CHECK(factorsOf(space, y, 1) == std::vector<Factors>{{S - 1}});
  CHECK(space.findChoice(0, "d1") == -1);
  CHECK(space.findChoice(0, "d0") != -1);
  CHECK(space.findChoice(b.producer(z), "d1") != -1);
}
