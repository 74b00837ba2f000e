//===- ChoicesTest.cpp - what ops may split, and what backward inherits ---===//

#include "core/strategy/Strategies.h"
#include "test/support/GraphBuilder.h"

#include <catch2/catch.hpp>

using namespace monarch;
using namespace monarch::test;

namespace {

using Names = std::vector<std::string>;

Names namesOf(const StrategySpace &space, OpId op) {
  Names names;
  for (const Choice &choice : space.choices(op))
    names.push_back(choice.name);
  return names;
}

const Choice &choice(const StrategySpace &space, OpId op,
                     std::string_view name) {
  int index = space.findChoice(op, name);
  REQUIRE(index != -1);
  return space.choices(op)[index];
}

const AxisState R = AxisState::replicated(), P = AxisState::partial();
AxisState S(int dim, std::vector<int> factors = {0}) {
  return AxisState::split(dim, std::move(factors));
}

const Arg first = OperandArg{0}, second = OperandArg{1}, third = OperandArg{2};

/// y = x w + c and its backward: dx = g w', dw = (g' x)', dc = sum of g.
struct Linear {
  GraphBuilder b;
  ValueId x, w, wt, c, y, g, wtt, dx, gt, dwt, dw, dc, dcFlat;

  Linear() {
    x = b.input("x", {6, 8}, DType::Float64);
    w = b.parameter("w", {10, 8});
    c = b.parameter("c", {10});
    wt = b.op("aten::t", {w}, {first}, {8, 10});
    y = b.op("aten::addmm", {c, x, wt}, {first, second, third, 1.0, 1.0},
             {6, 10});
    ValueId sum = b.op("aten::sum", {y}, {first, {}}, {});
    ValueId seed = b.seed();
    b.backwardOf(sum);
    g = b.op("aten::expand", {seed}, {first, ResultSizes{0}, false}, {6, 10});
    b.backwardOf(y);
    wtt = b.op("aten::t", {wt}, {first}, {10, 8});
    dx = b.op("aten::mm", {g, wtt}, {first, second}, {6, 8});
    gt = b.op("aten::t", {g}, {first}, {10, 6});
    dwt = b.op("aten::mm", {gt, x}, {first, second}, {10, 8});
    ValueId dwtt = b.op("aten::t", {dwt}, {first}, {8, 10});
    dc = b.op("aten::sum.dim_IntList", {g},
              {first, std::vector<int64_t>{0}, true, {}}, {1, 10});
    dcFlat = b.op("aten::view", {dc}, {first, ResultSizes{0}}, {10});
    b.backwardOf(wt);
    dw = b.op("aten::t", {dwtt}, {first}, {10, 8});
    b.cotangent(g, {y});
    b.cotangent(dx, {x});
    b.cotangent(dwtt, {wt});
    b.cotangent(dw, {w});
    b.cotangent(dcFlat, {c});
    b.graph.loss = sum;
  }
};

} // namespace

TEST_CASE("a product splits rows, columns and what it contracts") {
  Linear model;
  Graph graph = model.b.finish();
  StrategySpace space(graph);
  OpId addmm = model.b.producer(model.y);
  CHECK(namesOf(space, addmm) ==
        Names{"whole", "i", "j", "k", "pass0", "pass1"});
  Column rows = space.column(addmm, choice(space, addmm, "i"));
  CHECK(rows.operands == std::vector<AxisState>{R, S(0), R});
  CHECK(rows.results == std::vector<AxisState>{S(0)});
  CHECK(rows.labels == Names{"i"});
  Column columns = space.column(addmm, choice(space, addmm, "j"));
  CHECK(columns.operands == std::vector<AxisState>{S(0), R, S(1)});
  // The bias is added once: it is partial where the product is.
  Column inner = space.column(addmm, choice(space, addmm, "k"));
  CHECK(inner.operands == std::vector<AxisState>{P, S(1), S(0)});
  CHECK(inner.results == std::vector<AxisState>{P});
  Column pass = space.column(addmm, choice(space, addmm, "pass0"));
  CHECK(pass.operands == std::vector<AxisState>{P, P, R});
  CHECK(pass.results == std::vector<AxisState>{P});
  CHECK(pass.labels.empty());
}

TEST_CASE("backward ops inherit through values and cotangents") {
  Linear model;
  Graph graph = model.b.finish();
  StrategySpace space(graph);
  OpId addmm = model.b.producer(model.y);
  auto states = [&](ValueId gradient, std::string_view name) {
    OpId op = model.b.producer(gradient);
    return space.column(op, space.inherited(op, choice(space, addmm, name)),
                        -1);
  };
  CHECK(space.backwardOps(addmm).size() == 7);
  CHECK(states(model.dx, "i").results[0] == S(0));
  CHECK(states(model.dx, "j").results[0] == P);
  CHECK(states(model.dx, "j").operands == std::vector<AxisState>{S(1), S(0)});
  CHECK(states(model.dx, "k").results[0] == S(1));
  CHECK(states(model.dwt, "i").results[0] == P);
  CHECK(states(model.dwt, "j").results[0] == S(0));
  CHECK(states(model.dwt, "k").results[0] == S(1));
  CHECK(states(model.dc, "i").results[0] == P);
  CHECK(states(model.dc, "j").results[0] == S(1));
  // The bias' gradient knows no k.
  CHECK(states(model.dc, "k").results[0] == R);
  CHECK(states(model.dcFlat, "j").results[0] == S(0));
  for (OpId op : space.backwardOps(addmm)) {
    CHECK(space.inherited(op, space.choices(addmm)[0]).empty());
    CHECK(space.inherited(op, choice(space, addmm, "pass1")).empty());
    CHECK(namesOf(space, op) == Names{"whole"});
  }
  OpId t = model.b.producer(model.wt);
  REQUIRE(space.backwardOps(t).size() == 1);
  CHECK(space.inherited(space.backwardOps(t)[0], space.choices(t)[1]).size() ==
        1);
}

TEST_CASE("attention splits batch, heads, queries, keys and both head dims") {
  GraphBuilder b;
  ValueId q = b.input("q", {2, 3, 4, 8}, DType::Float64);
  ValueId k = b.input("k", {2, 3, 5, 8}, DType::Float64);
  ValueId v = b.input("v", {2, 3, 5, 6}, DType::Float64);
  b.ops("monarch::attention", {q, k, v}, {first, second, third, {}, false, 0.5},
        {GraphBuilder::Shape{2, 3, 4, 6}, GraphBuilder::Shape{2, 3, 4}});
  Graph graph = b.finish();
  StrategySpace space(graph);
  CHECK(namesOf(space, 0) ==
        Names{"whole", "b", "d", "e", "h", "q", "s", "pass0"});
  Column keys = space.column(0, choice(space, 0, "s"));
  CHECK(keys.operands == std::vector<AxisState>{R, S(2), S(2)});
  CHECK(keys.results == std::vector<AxisState>{P, R});
}

TEST_CASE("an embedding splits its rows and features but no integers pass") {
  GraphBuilder b;
  ValueId table = b.parameter("table", {97, 8});
  ValueId ids = b.input("ids", {2, 5});
  ValueId flat =
      b.op("aten::view", {ids}, {first, ResultSizes{0}}, {10}, DType::Int64);
  b.op("aten::embedding", {table, flat},
       {first, second, int64_t(-1), false, false}, {10, 8});
  Graph graph = b.finish();
  StrategySpace space(graph);
  CHECK(namesOf(space, 0) == Names{"whole", "g0.0", "g0.1"});
  CHECK(namesOf(space, 1) == Names{"whole", "e", "v", "x0.0", "x0.1", "pass0"});
  Column vocabulary = space.column(1, choice(space, 1, "v"));
  CHECK(vocabulary.operands == std::vector<AxisState>{S(0), R});
  CHECK(vocabulary.results == std::vector<AxisState>{P});
  Column sequence = space.column(1, choice(space, 1, "x0.1"));
  CHECK(sequence.results == std::vector<AxisState>{S(0, {1})});
}

TEST_CASE("a split has a factor in each section") {
  GraphBuilder b;
  ValueId x = b.input("x", {7, 24}, DType::Float64);
  std::vector<ValueId> parts =
      b.ops("aten::split_with_sizes", {x}, {first, ResultsSizes{1}, int64_t(1)},
            {GraphBuilder::Shape{7, 12}, GraphBuilder::Shape{7, 12}});
  for (ValueId &part : parts)
    part = b.op("aten::view", {part}, {first, ResultSizes{0}}, {7, 3, 4});
  Graph graph = b.finish();
  StrategySpace space(graph);
  CHECK(namesOf(space, 0) == Names{"whole", "d0", "d1.0", "d1.0:0.1:1",
                                   "d1.0:1.1:0", "d1.1", "pass0"});
  Column mixed = space.column(0, choice(space, 0, "d1.0:0.1:1"));
  CHECK(mixed.operands == std::vector<AxisState>{S(1, {0, 1})});
  CHECK(mixed.results == std::vector<AxisState>{S(1, {0}), S(1, {1})});
}

TEST_CASE("two dims of one value are never split at once") {
  GraphBuilder b;
  ValueId x = b.input("x", {4, 6, 6}, DType::Float64);
  b.op("aten::bmm", {x, x}, {first, second}, {4, 6, 6});
  Graph graph = b.finish();
  StrategySpace space(graph);
  // i, j and k meet in x: only the batch is left.
  CHECK(namesOf(space, 0) == Names{"whole", "b", "pass0", "pass1"});
}

TEST_CASE("ops without a rule are whole and listed") {
  GraphBuilder b;
  ValueId x = b.input("x", {4, 6}, DType::Float64);
  ValueId y = b.op("example::sort", {x}, {first}, {4, 6});
  b.op("example::sort", {y}, {first}, {4, 6});
  Graph graph = b.finish();
  StrategySpace space(graph);
  CHECK(space.rule(0) == nullptr);
  CHECK(namesOf(space, 0) == Names{"whole"});
  CHECK(space.column(0, space.choices(0)[0]).operands ==
        std::vector<AxisState>{R});
  CHECK(space.opsWithoutRule() ==
        std::map<std::string, int>{{"example::sort", 2}});
}

TEST_CASE("ops that no parameter reaches are cloned") {
  GraphBuilder b;
  ValueId ids = b.input("ids", {2, 5});
  ValueId mask =
      b.op("aten::ne.Scalar", {ids}, {first, int64_t(0)}, {2, 5}, DType::Bool);
  ValueId table = b.parameter("table", {97, 8});
  ValueId x = b.op("aten::embedding", {table, ids},
                   {first, second, int64_t(-1), false, false}, {2, 5, 8});
  ValueId y = b.op("aten::gelu", {x}, {first, std::string("none")}, {2, 5, 8});
  b.backwardOf(y);
  ValueId seed = b.seed();
  ValueId g = b.op("aten::neg", {seed}, {first}, {});
  Graph graph = b.finish();
  StrategySpace space(graph);
  CHECK(space.isCloned(b.producer(mask)));
  CHECK_FALSE(space.isCloned(b.producer(x)));
  CHECK_FALSE(space.isCloned(b.producer(y)));
  CHECK_FALSE(space.isCloned(b.producer(g)));
}
