//===- NormalizeTest.cpp --------------------------------------------------===//
//
// Identities, sizes and dead ops on graphs made by hand, and shapes inferred
// from two captures.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/Normalize.h"

#include <catch2/catch.hpp>

using namespace monarch;

namespace {

/// Raw graphs: one leaf or op a call.
struct Raw {
  Graph graph;

  ValueId leaf(ValueKind kind, std::string name, std::vector<int64_t> shape) {
    Value value;
    value.kind = kind;
    value.name = std::move(name);
    value.shape = std::move(shape);
    value.batch.assign(value.shape.size(), 0);
    graph.values.push_back(value);
    return static_cast<ValueId>(graph.values.size() - 1);
  }
  ValueId op(std::string name, std::vector<ValueId> operands,
             std::vector<Arg> args, std::vector<int64_t> shape,
             Phase phase = Phase::Forward, OpId forward = None) {
    Value value;
    value.shape = std::move(shape);
    value.batch.assign(value.shape.size(), 0);
    value.producer = static_cast<OpId>(graph.ops.size());
    graph.values.push_back(value);
    Op made;
    made.name = std::move(name);
    made.operands = std::move(operands);
    made.args = std::move(args);
    made.results = {static_cast<ValueId>(graph.values.size() - 1)};
    made.phase = phase;
    made.forward = forward;
    graph.ops.push_back(made);
    return made.results[0];
  }
  ValueId input(std::vector<int64_t> shape) {
    ValueId id = leaf(ValueKind::Input, "x", std::move(shape));
    graph.inputs.push_back({id, "x"});
    return id;
  }
};

using Ints = std::vector<int64_t>;
const Arg First = OperandArg{0};

std::vector<std::string> names(const Graph &graph) {
  std::vector<std::string> list;
  for (const Op &op : graph.ops)
    list.push_back(op.name);
  return list;
}

} // namespace

TEST_CASE("ops that give their operand back are dropped") {
  Raw raw;
  ValueId x = raw.input({4, 6});
  ValueId a = raw.op("aten::detach", {x}, {First}, {4, 6});
  ValueId b = raw.op("aten::expand", {a}, {First, Ints{4, 6}, false}, {4, 6});
  ValueId c = raw.op(
      "aten::slice.Tensor", {b},
      {First, int64_t{0}, int64_t{0}, int64_t{1} << 62, int64_t{1}}, {4, 6});
  ValueId d = raw.op("aten::neg", {c}, {First}, {4, 6});
  raw.graph.outputs = {d};
  Graph graph = normalize(std::move(raw.graph));
  CHECK(names(graph) == std::vector<std::string>{"aten::neg"});
  CHECK(graph.ops[0].operands == std::vector<ValueId>{graph.inputs[0].value});
  CHECK_FALSE(verify(graph));
}

TEST_CASE("an identity stays where a backward op needs its forward op") {
  Raw raw;
  ValueId x = raw.input({4, 6});
  ValueId a = raw.op("aten::view", {x}, {First, Ints{4, 6}}, {4, 6});
  ValueId g = raw.op("aten::neg", {a}, {First}, {4, 6}, Phase::Backward, 0);
  raw.graph.outputs = {g};
  Graph graph = normalize(std::move(raw.graph));
  CHECK(names(graph) == std::vector<std::string>{"aten::view", "aten::neg"});
  CHECK(graph.ops[1].forward == 0);
}

TEST_CASE("a gradient that passes an identity is the gradient of both ends") {
  Raw raw;
  ValueId x = raw.input({4});
  ValueId y = raw.op("aten::neg", {x}, {First}, {4});
  ValueId g = raw.op("aten::neg", {y}, {First}, {4}, Phase::Backward, 0);
  ValueId h = raw.op("aten::alias", {g}, {First}, {4}, Phase::Backward, 0);
  raw.graph.values[g].cotangentOf = {y};
  raw.graph.values[h].cotangentOf = {x};
  raw.graph.outputs = {h};
  Graph graph = normalize(std::move(raw.graph));
  CHECK(graph.value(graph.outputs[0]).cotangentOf ==
        std::vector<ValueId>{0, 1});
}

TEST_CASE("sizes become references to results") {
  Raw raw;
  ValueId x = raw.input({4, 6});
  ValueId a = raw.op("aten::_unsafe_view", {x}, {First, Ints{-1}}, {24});
  ValueId b = raw.op(
      "aten::slice.Tensor", {a},
      {First, int64_t{-1}, int64_t{-20}, int64_t{1} << 62, int64_t{1}}, {20});
  ValueId c = raw.op("aten::arange", {},
                     {int64_t{20}, std::monostate{}, std::monostate{},
                      std::monostate{}, std::monostate{}},
                     {20});
  raw.graph.outputs = {b, c};
  Graph graph = normalize(std::move(raw.graph));
  CHECK(graph.ops[0].name == "aten::view");
  CHECK(graph.ops[0].args[1] == Arg(ResultSizes{0}));
  CHECK(graph.ops[1].args[1] == Arg(int64_t{0}));
  CHECK(graph.ops[1].args[2] == Arg(int64_t{4}));
  // Nothing is cut off at the end: open, whatever the size.
  CHECK(graph.ops[1].args[3] == Arg(std::numeric_limits<int64_t>::max()));
  CHECK(graph.ops[2].args[0] == Arg(ResultSize{0, 0}));
  CHECK(graph.ops[2].args[1] == Arg(DType::Float32));
}

TEST_CASE("what no root needs is left out, parameters stay") {
  Raw raw;
  ValueId w = raw.leaf(ValueKind::Parameter, "w", {4});
  raw.graph.parameters.push_back({w, {"w"}, true, {}, {}});
  ValueId unused = raw.leaf(ValueKind::Buffer, "b", {4});
  raw.graph.buffers.push_back({unused, {"b"}, {}, None, false});
  ValueId x = raw.input({4});
  raw.op("aten::exp", {x}, {First}, {4});
  raw.graph.outputs = {raw.op("aten::neg", {x}, {First}, {4})};
  Graph graph = normalize(std::move(raw.graph));
  CHECK(names(graph) == std::vector<std::string>{"aten::neg"});
  CHECK(graph.parameters.size() == 1);
  CHECK(graph.buffers.empty());
  CHECK(graph.values.size() == 3);
  CHECK_FALSE(verify(graph));
}

TEST_CASE("two captures tell rows from extents that are equal by chance") {
  auto captured = [](int64_t rows, int64_t heads, bool isDifferent) {
    Raw raw;
    ValueId x = raw.input({rows, heads, 2 * rows});
    raw.graph.outputs = {raw.op(isDifferent ? "aten::exp" : "aten::neg", {x},
                                {First}, {rows, heads, 2 * rows})};
    raw.graph.unitRows = rows;
    return raw.graph;
  };
  auto graph = inferBatch(captured(4, 4, false), captured(5, 4, false));
  REQUIRE(graph);
  CHECK(graph->dynamicBatch);
  CHECK(graph->value(0).batch == std::vector<int64_t>{1, 0, 2});
  auto scaled = withUnitRows(*graph, 7);
  REQUIRE(scaled);
  CHECK(scaled->value(1).shape == std::vector<int64_t>{7, 4, 14});
  CHECK_FALSE(inferBatch(captured(4, 4, false), captured(5, 4, true)));
  CHECK_FALSE(inferBatch(captured(4, 4, false), captured(5, 6, false)));
}

TEST_CASE("a mean that does not go linearly into the loss is found") {
  auto lossOf = [](std::string last) {
    Raw raw;
    ValueId inverse = raw.leaf(ValueKind::InverseCount, "n", {});
    ValueId x = raw.input({4});
    ValueId sum = raw.op("aten::sum", {x}, {First, std::monostate{}}, {});
    ValueId mean =
        raw.op("aten::mul.Tensor", {sum, inverse}, {First, OperandArg{1}}, {});
    raw.graph.loss = raw.op(last, {mean}, {First, 0.5}, {});
    LossCount count;
    count.inverseCount = inverse;
    count.perUnit = 4;
    raw.graph.counts = {count};
    return raw.graph;
  };
  CHECK(nonlinearCounts(lossOf("aten::mul.Tensor")).empty());
  CHECK(isSeparable(lossOf("aten::mul.Tensor")));
  CHECK(nonlinearCounts(lossOf("aten::exp")) == std::set<std::string>{"n"});
  CHECK_FALSE(isSeparable(lossOf("aten::exp")));
  // A number would be added once a unit.
  CHECK(nonlinearCounts(lossOf("aten::add.Tensor")).count("n") == 1);
}

namespace {

/// sum(f(x)) / count over x [4, 6], whose rows grow with the unit.
struct MeanOf {
  Raw raw;
  ValueId x;

  MeanOf() : x(raw.input({4, 6})) { grows(x, {1, 0}); }

  void grows(ValueId value, Ints batch) {
    raw.graph.values[value].batch = std::move(batch);
  }
  ValueId op(std::string name, std::vector<ValueId> operands,
             std::vector<Arg> args, Ints shape, Ints batch) {
    ValueId value = raw.op(std::move(name), std::move(operands),
                           std::move(args), std::move(shape));
    grows(value, std::move(batch));
    return value;
  }
  bool mixes(ValueId y) {
    ValueId sum = raw.op("aten::sum", {y}, {First, {}}, {});
    ValueId inverse = raw.leaf(ValueKind::InverseCount, "inverse_count.0", {});
    raw.graph.loss =
        raw.op("aten::mul.Tensor", {sum, inverse}, {First, OperandArg{1}}, {});
    return mixesRows(raw.graph);
  }
};

} // namespace

TEST_CASE("rows that meet before the loss are found") {
  const Arg second = OperandArg{1};
  SECTION("rows alone") {
    MeanOf of;
    ValueId w = of.raw.leaf(ValueKind::Parameter, "w", {6, 3});
    ValueId y = of.op("aten::mm", {of.x, w}, {First, second}, {4, 3}, {1, 0});
    y = of.op("aten::_softmax", {y}, {First, int64_t{-1}, false}, {4, 3},
              {1, 0});
    ValueId ones =
        of.raw.op("aten::new_ones", {y}, {First, ResultSizes{0}}, {3});
    CHECK_FALSE(of.mixes(
        of.op("aten::mul.Tensor", {y, ones}, {First, second}, {4, 3}, {1, 0})));
  }
  SECTION("each row against each") {
    MeanOf of;
    ValueId t = of.op("aten::t", {of.x}, {First}, {6, 4}, {0, 1});
    CHECK(of.mixes(
        of.op("aten::mm", {of.x, t}, {First, second}, {4, 4}, {1, 1})));
  }
  SECTION("statistics over rows") {
    MeanOf of;
    ValueId mean =
        of.raw.op("aten::mean.dim", {of.x}, {First, Ints{0}, false, {}}, {6});
    CHECK(of.mixes(of.op("aten::sub.Tensor", {of.x, mean},
                         {First, second, int64_t{1}}, {4, 6}, {1, 0})));
  }
  SECTION("a softmax over rows") {
    MeanOf of;
    CHECK(of.mixes(of.op("aten::_softmax", {of.x}, {First, int64_t{0}, false},
                         {4, 6}, {1, 0})));
  }
}
