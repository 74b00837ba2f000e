//===- RunFlags.h - the flags of a run ------------------------------------===//
//
// The same for `monarch-plan run` and `monarch-run`: the launcher hands them
// on.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/launch/RunOptions.h"
#include "tools/cli/Validators.h"

namespace monarch::cli {

inline void addRunFlags(CLI::App &app, runtime::RunOptions &options) {
  app.add_option("--weights", options.weights,
                 "the model's .pt2, a safetensors file or a folder of them");
  app.add_option("--init", options.initSeed, "fresh parameters from this seed");
  app.add_option("--data", options.data,
                 "batches as safetensors (default: synthetic)");
  app.add_option("--steps", options.steps,
                 "training steps (default: all of the data, or 1)")
      ->check(positive());
  app.add_option("--seed", options.seed, "of dropout and synthetic batches");
  app.add_option("--lr", options.optimizer.learningRate, "learning rate")
      ->check(notNegative());
  app.add_option("--weight-decay", options.optimizer.weightDecay,
                 "weight decay")
      ->check(notNegative());
  app.add_option("--clip-norm", options.optimizer.clipNorm,
                 "largest norm of all gradients (0: no clipping)")
      ->check(notNegative());
  app.add_flag("--verify", options.verify,
               "compare with the one-process program");
  app.add_option("--save-weights", options.saveWeights,
                 "whole weights as safetensors");
  app.add_option("--report", options.report, "what the run did, as JSON");
  app.add_option_function<int64_t>(
         "--timeout",
         [&options](int64_t seconds) {
           options.timeout = std::chrono::seconds(seconds);
         },
         "seconds that one operation may wait for other ranks")
      ->check(positive());
  app.add_option("--library", options.libraries,
                 "a shared library that brings PyTorch ops");
  app.add_option("--interface", options.interface,
                 "network interface (default: GLOO_SOCKET_IFNAME)");
}

} // namespace monarch::cli
