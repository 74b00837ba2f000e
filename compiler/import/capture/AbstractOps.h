//===- AbstractOps.h - PyTorch's ops that become the project's ------------===//
//
// Batch norm, group norm, embedding bags and grouped products: what they save
// for the backward differs by device, so they are recorded as ops of the
// project (runtime/ops/Ops.h), with gradients that are too.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/import/capture/Recorder.h"

#include <memory>

namespace monarch {

/// Registers gradients, and kernels at AutogradCPU, while it lives.
class AbstractOps {
public:
  explicit AbstractOps(Recorder &recorder);
  ~AbstractOps();
  AbstractOps(const AbstractOps &) = delete;
  AbstractOps &operator=(const AbstractOps &) = delete;

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace monarch
