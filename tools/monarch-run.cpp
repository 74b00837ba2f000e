//===- monarch-run.cpp - one rank of a program ----------------------------===//
//
// The per-rank binary, for `monarch-plan run`, torchrun --no-python, and any
// launcher that sets torchrun's variables. Needs neither LLVM nor the compiler.
//
//===----------------------------------------------------------------------===//
#include "runtime/launch/EndOfJob.h"
#include "runtime/launch/RankProcess.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <cstdlib>

using namespace monarch;
using namespace monarch::runtime;

int main(int argc, char **argv) {
  RunOptions options;
  int64_t initSeed = 0, steps = 0, timeout = options.timeout.count();
  CLI::App app("Runs one rank of a program; the environment says which: RANK, "
               "WORLD_SIZE, MASTER_ADDR, MASTER_PORT.",
               "monarch-run");
  app.add_option("DIR", options.directory, "Program files")->required();
  app.add_option("--weights", options.weights,
                 "The model's .pt2, or safetensors");
  auto *init =
      app.add_option("--init", initSeed, "Fresh parameters from this seed");
  app.add_option("--data", options.data,
                 "Batches as safetensors (default: synthetic)");
  auto *stepsOption = app.add_option("--steps", steps,
                                     "Training steps (default: all of the "
                                     "data, or 1)")
                          ->check(CLI::PositiveNumber);
  app.add_option("--seed", options.seed, "Of dropout and synthetic batches");
  app.add_option("--lr", options.optimizer.learningRate, "Learning rate");
  app.add_option("--weight-decay", options.optimizer.weightDecay,
                 "Weight decay");
  app.add_option("--clip-norm", options.optimizer.clipNorm,
                 "Largest norm of all gradients (0: no clipping)")
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--verify", options.verify,
               "Compare with the one-process program");
  app.add_option("--save-weights", options.saveWeights,
                 "Whole weights as safetensors");
  app.add_option("--report", options.report, "What the run did, as JSON");
  app.add_option("--timeout", timeout,
                 "Seconds that one operation may wait for other ranks")
      ->check(CLI::PositiveNumber);
  app.add_option("--interface", options.interface,
                 "Network interface (default: GLOO_SOCKET_IFNAME)");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(ExitCode::Usage);
  }
  if (*init)
    options.initSeed = initSeed;
  if (*stepsOption)
    options.steps = steps;
  options.timeout = std::chrono::seconds(timeout);

  auto place =
      placeFromEnvironment([](const char *name) { return std::getenv(name); });
  if (!place)
    endJob({}, place.error());
  return runRank(options, *place);
}
