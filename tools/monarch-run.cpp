//===- monarch-run.cpp - one rank of a program ----------------------------===//
//
// The per-rank binary, for `monarch-plan run`, torchrun --no-python, and any
// launcher that sets torchrun's variables. Needs neither LLVM nor the compiler.
//
//===----------------------------------------------------------------------===//
#include "runtime/launch/EndOfJob.h"
#include "runtime/launch/RankProcess.h"
#include "tools/cli/RunFlags.h"

#include <cstdlib>

using namespace monarch;
using namespace monarch::runtime;

int main(int argc, char **argv) {
  RunOptions options;
  CLI::App app("Runs one rank of a program; the environment says which: RANK, "
               "WORLD_SIZE, MASTER_ADDR, MASTER_PORT.",
               "monarch-run");
  app.add_option("DIR", options.directory, "Program files")->required();
  cli::addRunFlags(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(ExitCode::Usage);
  }
  auto place =
      placeFromEnvironment([](const char *name) { return std::getenv(name); });
  if (!place)
    endJob({}, place.error());
  return runRank(options, *place);
}
