// Joint graphs as aten modules: nothing is lost either way, in memory or as
// text.
#include "compiler/analyze/AtenGraph.h"
#include "dialects/aten/AtenDialect.h"
#include "test/support/GraphBuilder.h"
#include "test/support/ModuleText.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <limits>

using namespace monarch;
using namespace monarch::test;

namespace {

/// Through a module in memory, then through its text.
void checkRoundTrip(const Graph &graph) {
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module = toAten(graph, context);
  REQUIRE(mlir::succeeded(mlir::verify(*module)));
  Expected<Graph> same = graphOf(*module);
  REQUIRE(same);
  CHECK(writeGraph(*same) == writeGraph(graph));

  const std::string text = textOf(*module);
  INFO(text);
  auto parsed = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  REQUIRE(parsed);
  Expected<Graph> reread = graphOf(*parsed);
  REQUIRE(reread);
  CHECK(writeGraph(*reread) == writeGraph(graph));
}

/// y = x w, its loss and backward: every kind of leaf and fact.
Graph trainedMatmul() {
  GraphBuilder b;
  b.graph.unitRows = 4;
  b.graph.dynamicBatch = true;
  ValueId x = b.input("x", {4, 8}, DType::Float64);
  b.graph.values[x].batch = {1, 0};
  ValueId labels = b.input("labels", {4});
  b.graph.values[labels].batch = {1};
  ValueId w = b.parameter("layer.weight", {8, 6});
  b.graph.parameters[0].names.push_back("tied.weight");
  b.graph.parameters[0].storage = {"data/weights/weight_0", 64, {6, 1}};
  b.parameter("frozen", {3}, DType::BFloat16);
  b.graph.parameters[1].trainable = false;
  ValueId mean = b.buffer("running", {6});
  b.graph.buffers[0].persistent = false;
  b.constant("table", {0, 2}, DType::UInt8);
  b.random();
  ValueId seed = b.seed();
  Value inverse;
  inverse.name = "inverse_count.0";
  inverse.kind = ValueKind::InverseCount;
  inverse.type = DType::Float64;
  b.graph.values.push_back(inverse);
  auto count = static_cast<ValueId>(b.graph.values.size() - 1);
  b.graph.counts.push_back({count, labels, -100, 0});

  ValueId y = b.op("aten::mm", {x, w}, {OperandArg{0}, OperandArg{1}}, {4, 6});
  b.graph.values[y].batch = {1, 0};
  ValueId sum = b.op("aten::sum", {y}, {OperandArg{0}, std::monostate()}, {});
  ValueId loss = b.op("aten::mul.Tensor", {sum, count},
                      {OperandArg{0}, OperandArg{1}}, {});
  ValueId updated = b.op("aten::add.Tensor", {mean, mean},
                         {OperandArg{0}, OperandArg{1}, int64_t(1)}, {6});
  b.graph.buffers[0].updated = updated;
  b.graph.loss = loss;
  b.graph.outputs = {loss, y};
  b.graph.ops[0].module = "model.layer";
  b.graph.ops[0].source = "model.py:12";
  b.graph.ops[1].source = "no line";
  b.graph.ops[2].module = "only.module";

  b.backwardOf(loss);
  ValueId gsum = b.op("aten::mul.Tensor", {seed, count},
                      {OperandArg{0}, OperandArg{1}}, {});
  b.cotangent(gsum, {sum});
  b.backwardOf(sum);
  ValueId gy = b.op("aten::expand", {gsum},
                    {OperandArg{0}, ResultSizes{0}, false}, {4, 6});
  b.graph.values[gy].batch = {1, 0};
  b.cotangent(gy, {y});
  b.backwardOf(y);
  ValueId xt = b.op("aten::t", {x}, {OperandArg{0}}, {8, 4});
  b.graph.values[xt].batch = {0, 1};
  ValueId gw =
      b.op("aten::mm", {xt, gy}, {OperandArg{0}, OperandArg{1}}, {8, 6});
  b.cotangent(gw, {w});
  return b.finish();
}

} // namespace

TEST_CASE("A trained graph survives the aten dialect") {
  checkRoundTrip(trainedMatmul());
}

TEST_CASE("Graphs of models survive the aten dialect") {
  auto name = GENERATE("mlp-small", "gpt-small", "gpt-dropout", "gpt2-small",
                       "llama-small");
  CAPTURE(name);
  std::ifstream file(std::string(MONARCH_FIXTURES "/graphs/") + name + ".json");
  std::string text(std::istreambuf_iterator<char>(file), {});
  Expected<Graph> graph = readGraph(text);
  REQUIRE(graph);
  checkRoundTrip(*graph);
}

TEST_CASE("Every kind of argument survives the aten dialect") {
  GraphBuilder b;
  ValueId x = b.input("x", {2, 3}, DType::Float32);
  const double inf = std::numeric_limits<double>::infinity();
  b.ops("test::everything", {x, x},
        {std::monostate(),
         OperandArg{1},
         OperandListArg{{0, None, 1}},
         OperandListArg{},
         true,
         false,
         int64_t(-7),
         int64_t(1) << 62,
         0.1,
         1e-300,
         -0.0,
         inf,
         -inf,
         3.0,
         std::string("a \"quoted\" word"),
         std::vector<int64_t>{1, -2},
         std::vector<int64_t>{},
         std::vector<double>{0.5, inf},
         std::vector<bool>{true, false},
         DType::BFloat16,
         DType::Bool,
         DType::UInt8,
         ResultSizes{0},
         ResultSize{0, 1}},
        {GraphBuilder::Shape{2, 3}, std::nullopt, GraphBuilder::Shape{5}});
  b.ops("aten::split_with_sizes", {x}, {OperandArg{0}, ResultsSizes{1}},
        {GraphBuilder::Shape{2, 1}, GraphBuilder::Shape{2, 2}});
  checkRoundTrip(b.finish());
}

TEST_CASE("A module without a graph is refused") {
  mlir::MLIRContext context;
  auto module = mlir::parseSourceString<mlir::ModuleOp>("module {}", &context);
  Expected<Graph> graph = graphOf(*module);
  REQUIRE(!graph);
  CHECK(graph.error().id == "MP1023");
}
