#include "core/support/Files.h"
#include "planner/plan/PlanFile.h"
#include "tools/cli/CompileProgram.h"
#include "tools/cli/ModelInput.h"

namespace monarch::cli {

Expected<Compiled> compileProgram(const CompileVerbOptions &options) {
  const auto text = readFile(options.plan);
  if (!text)
    return text.error();
  const auto plan = planner::readPlan(*text);
  if (!plan) {
    Error error = plan.error();
    error.where =
        options.plan + (error.where.empty() ? "" : ", " + error.where);
    return error;
  }
  if (const std::string target = planner::targetOf(*plan);
      target != planner::OwnTarget)
    return Error{"MP2214", ExitCode::BadInput,
                 "the plan is for " + target + ", which does not run here",
                 options.plan,
                 "plan with --target monarch for a program of this project"};
  const auto graph = loadModel(options.model, std::nullopt, options.dumpPhases);
  if (!graph)
    return graph.error();
  CompileOptions compileOptions;
  compileOptions.outDirectory = options.output;
  compileOptions.dump.directory = options.dumpPhases;
  return monarch::compile(*plan, *graph, compileOptions);
}

int compile(const CompileVerbOptions &options, const Console &console) {
  const auto compiled = compileProgram(options);
  if (!compiled)
    return console.fail(compiled.error());
  for (const std::string &remark : compiled->remarks)
    console.note(remark);
  const Program &program = compiled->program;
  Json document;
  document["directory"] = options.output;
  document["ranks"] = program.worldSize();
  document["stages"] = program.roles.size();
  document["peak_tensor_bytes"] = program.predictedPeakBytes;
  std::string summary = options.output + ": " +
                        std::to_string(program.worldSize()) + " ranks in " +
                        std::to_string(program.roles.size()) + " stages\n";
  for (const auto &[kind, count] : program.predicted.collectives) {
    document["collectives"][kind] = count;
    document["bytes"][kind] = program.predicted.bytes.at(kind);
    summary += "  " + kind + ": " + std::to_string(count) + " a step, " +
               std::to_string(program.predicted.bytes.at(kind)) + " bytes\n";
  }
  summary += "  peak of the fullest rank: " +
             std::to_string(program.predictedPeakBytes) + " bytes\n";
  console.result(summary, document);
  return static_cast<int>(ExitCode::Ok);
}

} // namespace monarch::cli
