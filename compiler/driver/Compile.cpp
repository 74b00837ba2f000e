//===- Compile.cpp - from decisions to program files ----------------------===//

#include "compiler/driver/Phases.h"
#include "compiler/emit/Emit.h"
#include "compiler/emit/GlobalGraph.h"
#include "compiler/partition/Partition.h"
#include "compiler/partition/Passes.h"
#include "core/program/ProgramFormat.h"
#include "core/program/Verify.h"
#include "core/support/Files.h"

using namespace mlir;

namespace monarch {

/// Where --verify finds the one-process program, inside the program's folder.
static constexpr std::string_view OneProcessFolder = "one_process";

/// A resolved plan through dist, and proved.
static Expected<Program> lower(const planner::Resolved &resolved,
                               const Graph &graph, const DumpOptions &dump) {
  Phases phases(dump, /*first=*/3);
  OwningOpRef<ModuleOp> module = partition(resolved, graph, phases.context);
  if (auto error = phases.finish(*module, "dist"))
    return *error;
  auto error = phases.run(*module, [](PassManager &manager) {
    auto &programs = manager.nest<dist::ProgramOp>();
    programs.addPass(createVerifySteps());
    programs.addPass(createLocalize());
    programs.addPass(createVerifyPartitioned());
  });
  if (error)
    return *error;
  if (auto error = phases.finish(*module, "dist-local"))
    return *error;
  Expected<Program> program = emit(*module);
  if (!program)
    return program;
  if (std::vector<Error> errors = verify(*program); !errors.empty())
    return joined(errors);
  return program;
}

/// One rank that runs all units of the same global batch.
static Expected<Program> onOneRank(const StrategySpace &space,
                                   const planner::Decisions &decisions,
                                   const std::string &planDigest) {
  planner::Decisions alone =
      planner::oneProcess(space.graph(), space, decisions.globalRows);
  alone.optimizer = decisions.optimizer;
  alone.masterWeights = decisions.masterWeights;
  Expected<planner::Resolved> resolved = planner::resolve(space, alone);
  if (!resolved)
    return resolved.error();
  resolved->program.planDigest = planDigest;
  return lower(*resolved, space.graph(), {});
}

static std::optional<Error> writeCompiled(const Compiled &compiled,
                                          const std::string &directory) {
  std::map<std::string, std::string> files = filesOf(compiled.program);
  for (auto &[name, bytes] : filesOf(compiled.oneProcess))
    files[std::string(OneProcessFolder) + "/" + name] = bytes;
  return writeDirectory(directory, files, [](const std::string &name) {
    return name == OneProcessFolder || isProgramFile(name);
  });
}

/// Everything but the files.
static Expected<Compiled> build(const StrategySpace &space,
                                const planner::Decisions &decisions,
                                const std::string &planDigest,
                                const DumpOptions &dump) {
  Expected<planner::Resolved> resolved = planner::resolve(space, decisions);
  if (!resolved)
    return resolved.error();
  resolved->program.planDigest = planDigest;
  Expected<Program> program = lower(*resolved, space.graph(), dump);
  if (!program)
    return program.error();
  Expected<Program> oneProcess = onOneRank(space, decisions, planDigest);
  if (!oneProcess)
    return oneProcess.error();
  return Compiled{std::move(*program), std::move(*oneProcess),
                  std::move(resolved->remarks)};
}

Expected<Compiled> compile(const StrategySpace &space,
                           const planner::Decisions &decisions,
                           const std::string &planDigest,
                           const CompileOptions &options) {
  Expected<Compiled> compiled =
      build(space, decisions, planDigest, options.dump);
  if (!compiled)
    return compiled;
  if (auto error = writeCompiled(*compiled, options.outDirectory))
    return *error;
  return compiled;
}

/// Rows of the graph whose digest the plan holds; a graph of other rows has
/// another.
static int64_t digestedRows(const planner::PlanFile &plan) {
  const Json &inputs = plan.document["inputs"];
  if (!inputs.is_object() || !inputs.contains("graph"))
    return planner::unitRowsOf(plan);
  const Json &graph = inputs["graph"];
  bool known = graph.is_object() && graph.contains("unit_rows") &&
               graph["unit_rows"].is_number_integer() &&
               graph["unit_rows"].get<int64_t>() > 0;
  return known ? graph["unit_rows"].get<int64_t>() : planner::unitRowsOf(plan);
}

/// What was priced is what is compiled, or nothing is.
static std::optional<Error> checkPrediction(const planner::PlanFile &plan,
                                            const Program &program) {
  if (!plan.document.contains("prediction"))
    return std::nullopt;
  Json expected;
  expected["peak_tensor_bytes"] = program.predictedPeakBytes;
  expected["bytes"] = program.predicted.bytes;
  expected["collectives"] = program.predicted.collectives;
  const Json &prediction = plan.document["prediction"];
  for (const auto &[figure, value] : expected.items())
    if (!prediction.is_object() || !prediction.contains(figure) ||
        nlohmann::json(prediction[figure]) != nlohmann::json(value))
      return Error{"MP2213", ExitCode::Stale,
                   "the plan's predicted " + figure +
                       " are not those of its decisions",
                   "prediction", "plan again; a plan is not edited by hand"};
  return std::nullopt;
}

Expected<Compiled> compile(const planner::PlanFile &plan, const Graph &graph,
                           const CompileOptions &options) {
  Expected<Graph> planned = withUnitRows(graph, digestedRows(plan));
  if (!planned)
    return planned.error();
  if (auto error = planner::checkInputs(plan, digest(*planned), ""))
    return *error;
  Expected<Graph> unit = withUnitRows(graph, planner::unitRowsOf(plan));
  if (!unit)
    return unit.error();
  StrategySpace space(*unit);
  Expected<planner::Decisions> decisions =
      planner::expandDecisions(plan, space);
  if (!decisions)
    return decisions.error();
  Expected<Compiled> compiled =
      build(space, *decisions, planner::planDigest(plan), options.dump);
  if (!compiled)
    return compiled;
  if (auto error = checkPrediction(plan, compiled->program))
    return *error;
  if (auto error = writeCompiled(*compiled, options.outDirectory))
    return *error;
  return compiled;
}

Expected<GlobalView> globalView(const StrategySpace &space,
                                const planner::Decisions &decisions) {
  Expected<planner::Resolved> resolved = planner::resolve(space, decisions);
  if (!resolved)
    return resolved.error();
  MLIRContext context(MLIRContext::Threading::DISABLED);
  OwningOpRef<ModuleOp> module = partition(*resolved, space.graph(), context);
  Expected<Graph> wired = globalGraph(*module, space.graph());
  if (!wired)
    return wired.error();
  Expected<Program> program = onOneRank(StrategySpace(*wired), decisions, "");
  if (!program)
    return program.error();
  return GlobalView{std::move(*wired), std::move(*program)};
}

} // namespace monarch
