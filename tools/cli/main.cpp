// monarch-plan: the command line. Verbs and flags as in DESIGN §8; CLI11 lives
// here alone, since its headers are dear.
#include "tools/cli/RunFlags.h"
#include "tools/cli/Verbs.h"

#include <iostream>

using namespace monarch;
using namespace monarch::cli;

namespace {

void addModel(CLI::App &verb, ModelOptions &options, bool required = true) {
  auto *model = verb.add_option("MODEL", options.model,
                                "a .pt2 file, or monarch.graph/1 JSON");
  if (required)
    model->required();
  verb.add_option("--loss", options.loss,
                  "OUTPUT, ce:LOGITS,LABELS or causal_lm:LOGITS,LABELS");
  verb.add_option("--shape", options.shapes, "NAME=AxB for open sizes");
  verb.add_option("--mode", options.mode, "train or infer")
      ->check(CLI::IsMember({"train", "infer"}));
}

/// What --format says, before or without parsing: usage errors obey it too.
Format formatOf(int argc, char **argv) {
  std::string_view before;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--format=json" ||
        (before == "--format" && argument == "json"))
      return Format::Json;
    before = argument;
  }
  return Format::Text;
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app{"The best split of a PyTorch model over data, pipeline and "
               "tensor parallelism: planned, proved, run."};
  app.name("monarch-plan");
  app.require_subcommand(1);
  app.fallthrough();
  Console console;
  console.format = formatOf(argc, argv);
  app.add_option("--format", console.format, "text or json")
      ->transform(CLI::CheckedTransformer(std::map<std::string, Format>{
          {"text", Format::Text}, {"json", Format::Json}}));

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

  PlanOptions planOptions;
  CLI::App *planVerb =
      app.add_subcommand("plan", "Choose the split for a cluster");
  addModel(*planVerb, planOptions.model);
  planVerb
      ->add_option("--cluster", planOptions.cluster,
                   "a file, cpu:N, or [NODESx]PER_NODExDEVICE")
      ->required();
  planVerb
      ->add_option("--global-batch", planOptions.globalBatch,
                   "rows of the batch of one step")
      ->required()
      ->check(positive());
  planVerb
      ->add_option("--micro-batch", planOptions.microBatch, "rows of one unit")
      ->check(positive());
  planVerb->add_option("--fix", planOptions.fix, "pins: dp=2,tp=2,pp=1");
  planVerb->add_option("--optimizer", planOptions.optimizer, "adamw or sgd")
      ->check(CLI::IsMember({"adamw", "sgd"}));
  planVerb->add_option("--target", planOptions.target, "what runs the plan")
      ->check(CLI::IsMember({"monarch"}));
  planVerb->add_option("-o,--output", planOptions.output,
                       "the plan file; - for stdout; nothing when absent");

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

  app.add_subcommand("version", "Show the version");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    // Help is a result.
    if (error.get_exit_code() == 0)
      return app.exit(error);
    return console.fail({"MP1800", ExitCode::Usage, error.what(),
                         "command line", "see monarch-plan VERB --help"});
  }

  if (*inspectVerb)
    return inspect(inspectOptions, console);
  if (*planVerb)
    return plan(planOptions, console);
  if (*compileVerb)
    return compile(compileOptions, console);
  if (*runVerb)
    return run(std::move(runOptions), console);
  return version(console);
}
