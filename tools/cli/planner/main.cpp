// monarch-plan of preset `planner`: the verbs that need no import of a model
// file, in one static program.
#include "tools/cli/planner/Commands.h"

using namespace monarch;
using namespace monarch::cli;

namespace {

Expected<Graph> refuseModelFile(const ModelOptions &options) {
  return Error{"MP1807", ExitCode::BadInput,
               "this monarch-plan is built without the compiler: it cannot "
               "read a model file",
               options.model,
               "give a config.json, or the graph that `monarch-plan inspect "
               "MODEL --emit graph` of a build with the compiler writes"};
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app{"The best split of a model over data, pipeline and tensor "
               "parallelism: planned."};
  app.name("monarch-plan");
  app.require_subcommand(1);
  app.fallthrough();
  Console console;
  PlannerCommands commands(app);
  if (const auto code = parse(app, argc, argv, console))
    return *code;
  return commands.run(refuseModelFile, console).value_or(0);
}
