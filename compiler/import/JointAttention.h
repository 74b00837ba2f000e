//===- JointAttention.h - joint files whose attention is wrong ------------===//
//
// Up to torch 2.15 `_export_forward_backward` decomposes attention on CPU in
// the forward pass alone: the backward pass is the fused kernel's, which then
// gets the attention's weights (rank 4) where it reads the logarithm of their
// sums (rank 3). The gradients below that attention are not those of the model,
// and PyTorch computes the same wrong ones from that file.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/import/capture/ExportedProgram.h"
#include "core/support/Error.h"

#include <optional>

namespace monarch {

/// MP1026 when the program is such a file; names the first such node.
std::optional<Error> findWrongAttention(const ExportedProgram &program);

} // namespace monarch
