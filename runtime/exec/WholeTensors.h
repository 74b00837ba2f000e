//===- WholeTensors.h - blocks of all ranks put together ------------------===//
//
// For files and checks: rank 0 collects a tensor's blocks from the ranks that
// hold them, across stages, and lays them into the whole by the index lists of
// the layout. Not counted as traffic or memory of a step.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/exec/Executor.h"

namespace monarch::runtime {

/// A tensor that one stage holds under a layout.
struct SpreadTensor {
  std::vector<std::string> names;
  int stage = 0;
  TensorStructure structure;
  Layout layout;
  DType type = DType::Float32;
  /// The value in its stage's role.
  int32_t value = None;
  bool isTrained = false;
};

/// Parameters of their owners (their float32 master copies, where they have
/// one), then buffers (and with `constants` those) of the first stage that
/// holds them; by stage, then as in the role.
std::vector<SpreadTensor> spreadParameters(const Program &program);
std::vector<SpreadTensor> spreadBuffers(const Program &program,
                                        bool constants = false);

/// By first name.
using NamedTensors = std::map<std::string, at::Tensor>;

/// A call of all ranks. `block` gives this rank's block, and is asked only for
/// tensors of its stage. Whole tensors on rank 0, nothing on the others.
Expected<NamedTensors>
gatherWhole(const Program &program, Communicator &communicator,
            const std::vector<SpreadTensor> &tensors,
            const std::function<at::Tensor(const SpreadTensor &)> &block);

} // namespace monarch::runtime
