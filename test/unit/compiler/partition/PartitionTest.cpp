// What resolve priced is what emit writes, whatever the plan; and both forms
// of dist survive their text.
#include "compiler/partition/Partition.h"
#include "compiler/emit/Emit.h"
#include "compiler/emit/GlobalGraph.h"
#include "compiler/partition/Passes.h"
#include "core/program/ProgramFormat.h"
#include "test/support/GptGraph.h"
#include "test/support/ModuleText.h"
#include "test/support/RandomPlan.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <catch2/catch.hpp>
#include <fstream>

using namespace monarch;
using namespace monarch::test;

namespace {

bool run(mlir::ModuleOp module, std::unique_ptr<mlir::Pass> pass) {
  mlir::PassManager manager(module.getContext());
  manager.addNestedPass<dist::ProgramOp>(std::move(pass));
  return mlir::succeeded(manager.run(module));
}

mlir::OwningOpRef<mlir::ModuleOp> reparsed(mlir::ModuleOp module) {
  const std::string text = textOf(module);
  auto parsed = mlir::parseSourceString<mlir::ModuleOp>(
      text, mlir::ParserConfig(module.getContext()));
  REQUIRE(parsed);
  CHECK(textOf(*parsed) == text);
  return parsed;
}

void checkEmitted(const Graph &graph, const planner::Decisions &decisions,
                  bool throughText) {
  StrategySpace space(graph);
  Expected<planner::Resolved> resolved = planner::resolve(space, decisions);
  REQUIRE(resolved);
  resolved->program.planDigest = "plan";
  mlir::MLIRContext context;
  auto module = partition(*resolved, graph, context);
  REQUIRE(mlir::succeeded(mlir::verify(*module)));
  if (throughText)
    module = reparsed(*module);
  REQUIRE(run(*module, createVerifySteps()));
  Expected<Graph> wired = globalGraph(*module, graph);
  REQUIRE(wired);
  CHECK(writeGraph(*wired) == writeGraph(graph));
  REQUIRE(run(*module, createLocalize()));
  REQUIRE(run(*module, createVerifyPartitioned()));
  if (throughText)
    module = reparsed(*module);
  Expected<Program> program = emit(*module);
  REQUIRE(program);
  CHECK(filesOf(*program) == filesOf(resolved->program));
}

} // namespace

TEST_CASE("The emitted program is the resolved one, for random plans") {
  auto name = GENERATE("mlp-small", "gpt-small", "gpt-dropout", "gpt2-small",
                       "llama-small");
  std::ifstream file(std::string(MONARCH_FIXTURES "/graphs/") + name + ".json");
  std::string text(std::istreambuf_iterator<char>(file), {});
  Expected<Graph> graph = readGraph(text);
  REQUIRE(graph);
  StrategySpace space(*graph);
  for (uint64_t seed = 0; seed < 12; ++seed) {
    planner::Decisions decisions = randomPlan(space, seed);
    INFO(name << ", seed " << seed << ": " << describe(decisions));
    Expected<Graph> unit = decisions.unitRows == graph->unitRows
                               ? *graph
                               : withUnitRows(*graph, decisions.unitRows);
    REQUIRE(unit);
    checkEmitted(*unit, decisions, /*throughText=*/seed < 3);
  }
}

TEST_CASE("Master weights are emitted as resolved") {
  GptShape shape;
  shape.type = DType::BFloat16;
  Graph graph = gptGraph(shape);
  StrategySpace space(graph);
  for (uint64_t seed = 0; seed < 6; ++seed) {
    planner::Decisions decisions = randomPlan(space, seed);
    decisions.masterWeights = true;
    INFO("seed " << seed << ": " << describe(decisions));
    checkEmitted(graph, decisions, /*throughText=*/seed < 2);
  }
}

TEST_CASE("The one-process program is emitted as resolved") {
  Graph graph = gptGraph({});
  StrategySpace space(graph);
  checkEmitted(graph, planner::oneProcess(graph, space, graph.unitRows * 3),
               /*throughText=*/true);
}

TEST_CASE("The global graph shows a step that reads another tensor") {
  Graph graph = gptGraph({});
  StrategySpace space(graph);
  Expected<planner::Resolved> resolved = planner::resolve(
      space, planner::oneProcess(graph, space, graph.unitRows));
  REQUIRE(resolved);
  mlir::MLIRContext context;
  auto module = partition(*resolved, graph, context);
  // The first op of two operands that are alike reads the first one twice.
  OpId changed = None;
  module->walk([&](dist::OpOp op) {
    if (changed == None && op.getOperands().size() == 2 &&
        op.getOperands()[0] != op.getOperands()[1] &&
        op.getOperands()[0].getType() == op.getOperands()[1].getType()) {
      changed = static_cast<OpId>(op.getOp());
      op->setOperand(1, op.getOperands()[0]);
    }
  });
  REQUIRE(changed != None);
  Expected<Graph> wired = globalGraph(*module, graph);
  REQUIRE(wired);
  Graph expected = graph;
  expected.ops[changed].operands[1] = expected.ops[changed].operands[0];
  CHECK(writeGraph(*wired) == writeGraph(expected));
}
