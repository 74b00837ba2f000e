//===- Workspace.h - what a kernel allocates beyond its results -----------===//
//
// Private to this folder. Measured with a counting allocator on the CPU kernels
// of LibTorch 2.15, one thread; test/strategies checks that no sample needs
// more.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/registry/Rule.h"

namespace monarch {

int64_t elementCount(const TensorType &tensor);
int64_t byteCount(const TensorType &tensor);

int64_t workspaceBytes(const std::string &name,
                       const std::vector<TensorType> &operands,
                       const std::vector<TensorType> &results);

} // namespace monarch
