// From a graph's file and a plan to a folder of programs.
#include "compiler/driver/Driver.h"
#include "compiler/import/Import.h"
#include "core/program/ProgramFormat.h"
#include "core/support/Files.h"
#include "planner/resolve/Resolve.h"
#include "test/support/GptGraph.h"
#include "test/support/RandomPlan.h"
#include "test/support/TemporaryFolder.h"

#include <catch2/catch.hpp>
#include <filesystem>

using namespace monarch;
using namespace monarch::test;

namespace {

planner::PlanFile planOf(const planner::Decisions &decisions,
                         const StrategySpace &space, const Graph &graph) {
  planner::PlanFile plan;
  plan.document["schema"] = "monarch.plan/1";
  plan.document["inputs"]["graph"] = {{"digest", digest(graph)},
                                      {"unit_rows", graph.unitRows}};
  plan.document["decisions"] = planner::compressDecisions(decisions, space);
  return plan;
}

} // namespace

TEST_CASE("A plan file compiles to programs that read back") {
  TemporaryFolder folder;
  Graph graph = gptGraph({});
  StrategySpace space(graph);
  planner::Decisions decisions =
      planner::normalised(randomPlan(space, 7), space);
  planner::PlanFile plan = planOf(decisions, space, graph);
  CompileOptions options;
  options.outDirectory = folder / "out";
  options.dump.directory = folder / "phases";

  Expected<Compiled> compiled = compile(plan, graph, options);
  REQUIRE(compiled);
  CHECK(compiled->program.planDigest == planner::planDigest(plan));
  CHECK(compiled->oneProcess.worldSize() == 1);
  CHECK(compiled->oneProcess.globalRows == decisions.globalRows);
  CHECK(compiled->oneProcess.optimizer == decisions.optimizer);

  Expected<Program> program = readProgram(options.outDirectory);
  REQUIRE(program);
  CHECK(filesOf(*program) == filesOf(compiled->program));
  Expected<Program> alone = readProgram(options.outDirectory + "/one_process");
  REQUIRE(alone);
  CHECK(filesOf(*alone) == filesOf(compiled->oneProcess));
  for (const char *name : {"3-dist.mlir", "4-dist-local.mlir"})
    CHECK(std::filesystem::file_size(options.dump.directory + "/" + name) > 0);

  // Again, over what is there.
  REQUIRE(compile(plan, graph, options));
  Expected<Program> again = readProgram(options.outDirectory);
  REQUIRE(again);
  CHECK(filesOf(*again) == filesOf(*program));
}

TEST_CASE("Both programs of a plan have its master weights") {
  TemporaryFolder folder;
  GptShape shape;
  shape.type = DType::BFloat16;
  Graph graph = gptGraph(shape);
  StrategySpace space(graph);
  planner::Decisions decisions =
      planner::normalised(randomPlan(space, 7), space);
  decisions.masterWeights = true;
  CompileOptions options;
  options.outDirectory = folder / "out";
  Expected<Compiled> compiled =
      compile(planOf(decisions, space, graph), graph, options);
  REQUIRE(compiled);
  for (const Program *program : {&compiled->program, &compiled->oneProcess})
    for (const Role &role : program->roles)
      for (const ProgramParameter &parameter : role.parameters)
        CHECK((parameter.master != None) == parameter.owner);
}

TEST_CASE("The global view of a plan is the one-process program") {
  Graph graph = gptGraph({});
  StrategySpace space(graph);
  planner::Decisions decisions = randomPlan(space, 11);
  INFO(describe(decisions));
  Expected<Graph> unit = withUnitRows(graph, decisions.unitRows);
  REQUIRE(unit);
  StrategySpace unitSpace(*unit);
  Expected<GlobalView> view = globalView(unitSpace, decisions);
  REQUIRE(view);
  planner::Decisions alone =
      planner::oneProcess(*unit, unitSpace, decisions.globalRows);
  alone.optimizer = decisions.optimizer;
  Expected<planner::Resolved> whole = planner::resolve(unitSpace, alone);
  REQUIRE(whole);
  CHECK(writeGraph(view->graph) == writeGraph(*unit));
  CHECK(filesOf(view->program) == filesOf(whole->program));
}

TEST_CASE("A plan of another model is stale, and nothing is written") {
  TemporaryFolder folder;
  Graph graph = gptGraph({});
  StrategySpace space(graph);
  planner::PlanFile plan =
      planOf(planner::oneProcess(graph, space, graph.unitRows), space, graph);
  GptShape other;
  other.layers = 1;
  CompileOptions options;
  options.outDirectory = folder / "out";
  Expected<Compiled> compiled = compile(plan, gptGraph(other), options);
  REQUIRE(!compiled);
  CHECK(compiled.error().id == "MP2211");
  CHECK(!std::filesystem::exists(options.outDirectory));
}

TEST_CASE("A graph's file is loaded as it stands, at the rows asked for") {
  TemporaryFolder folder;
  Graph graph = gptGraph({});
  const std::string path = folder / "graph.json";
  REQUIRE(!writeFile(path, writeGraph(graph)));
  Expected<Graph> same = loadGraph(path, {});
  REQUIRE(same);
  CHECK(writeGraph(*same) == writeGraph(graph));
  ImportOptions options;
  options.unitRows = 3;
  Expected<Graph> scaled = loadGraph(path, options);
  REQUIRE(scaled);
  CHECK(scaled->unitRows == 3);
  Expected<Graph> missing = loadGraph(folder / "none.pt2", {});
  REQUIRE(!missing);
  CHECK(missing.error().code == ExitCode::BadInput);
}
