//===- CheckScript.h - what a TorchScript program may do ------------------===//
//
// The code of a file, compiled and not yet run. Allowed are aten ops without
// effects beyond their tensors, and the part of prim that moves values; the
// rest is refused: files, processes, threads, printing, seeds, custom classes.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/script/ScriptFile.h"

namespace monarch {

/// Why a node is refused; "" where it is not.
std::string refusalOf(const torch::jit::Node &node);

} // namespace monarch
