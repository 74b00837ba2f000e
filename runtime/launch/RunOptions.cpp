//===- RunOptions.cpp - what a run is asked to do -------------------------===//
//
// See RunOptions.h.
//
//===----------------------------------------------------------------------===//
#include "runtime/launch/RunOptions.h"

#include <fmt/format.h>

namespace monarch::runtime {

std::vector<std::string> argumentsOf(const RunOptions &options) {
  std::vector<std::string> arguments{options.directory};
  auto add = [&](const char *name, std::string value) {
    arguments.push_back(name);
    arguments.push_back(std::move(value));
  };
  auto addText = [&](const char *name, const std::string &value) {
    if (!value.empty())
      add(name, value);
  };
  addText("--weights", options.weights);
  if (options.initSeed)
    add("--init", fmt::format("{}", *options.initSeed));
  addText("--data", options.data);
  if (options.steps)
    add("--steps", fmt::format("{}", *options.steps));
  add("--seed", fmt::format("{}", options.seed));
  // fmt's {} is the shortest text that reads back as the same number.
  add("--lr", fmt::format("{}", options.optimizer.learningRate));
  add("--weight-decay", fmt::format("{}", options.optimizer.weightDecay));
  add("--clip-norm", fmt::format("{}", options.optimizer.clipNorm));
  if (options.verify)
    arguments.push_back("--verify");
  addText("--save-weights", options.saveWeights);
  addText("--report", options.report);
  add("--timeout", fmt::format("{}", options.timeout.count()));
  addText("--interface", options.interface);
  for (const std::string &library : options.libraries)
    addText("--library", library);
  return arguments;
}

} // namespace monarch::runtime
