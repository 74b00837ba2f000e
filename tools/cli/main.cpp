// monarch-plan: the command line. Verbs and flags as in DESIGN §8; those of the
// planner are in tools/cli/planner.
#include "tools/cli/ModelInput.h"
#include "tools/cli/RunFlags.h"
#include "tools/cli/planner/Commands.h"

using namespace monarch;
using namespace monarch::cli;

int main(int argc, char **argv) {
  CLI::App app{"The best split of a PyTorch model over data, pipeline and "
               "tensor parallelism: planned, proved, run."};
  app.name("monarch-plan");
  app.require_subcommand(1);
  app.fallthrough();
  Console console;
  InspectOptions inspectOptions;
  CLI::App *inspectVerb =
      app.add_subcommand("inspect", "Show what a model file holds");
  addModel(*inspectVerb, inspectOptions.model);
  inspectVerb
      ->add_option("--emit", inspectOptions.emit,
                   "graph: the planner's graph, as JSON")
      ->check(CLI::IsMember({"graph"}));
  inspectVerb->add_option("--micro-batch", inspectOptions.microBatch,
                          "rows of the unit that the graph describes");

  PlannerCommands plannerCommands(app);

  CompileVerbOptions compileOptions;
  CLI::App *compileVerb =
      app.add_subcommand("compile", "Turn a plan into programs of ranks");
  compileVerb->add_option("PLAN", compileOptions.plan, "a plan file")
      ->required();
  addModel(*compileVerb, compileOptions.model);
  compileVerb
      ->add_option("-o,--output", compileOptions.output,
                   "the directory of the program")
      ->required();
  compileVerb->add_option("--dump-phases", compileOptions.dumpPhases,
                          "write the IR after each phase into this directory");

  RunVerbOptions runOptions;
  CLI::App *runVerb = app.add_subcommand("run", "Run a program on local ranks");
  runVerb
      ->add_option("PROGRAM", runOptions.program,
                   "a program directory, or a plan file with its MODEL")
      ->required();
  addModel(*runVerb, runOptions.model, false);
  addRunFlags(*runVerb, runOptions.run);

  if (const auto code = parse(app, argc, argv, console))
    return *code;

  if (*inspectVerb)
    return inspect(inspectOptions, console);
  if (*compileVerb)
    return compile(compileOptions, console);
  if (*runVerb)
    return run(std::move(runOptions), console);
  const ModelLoader loader = [&](const ModelOptions &options) {
    FileFacts facts;
    auto graph = loadModel(options, std::nullopt, "", &facts);
    for (const std::string &note : facts.notes)
      console.note("note: " + note);
    return graph;
  };
  return plannerCommands.run(loader, console).value_or(0);
}
