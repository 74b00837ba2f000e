//===- ScriptWeights.h - the weights inside a TorchScript file ------------===//
//
// By attribute path, as views of the mapped file (runtime/script).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/data/Sources.h"

namespace monarch::runtime {

Expected<std::unique_ptr<WeightSource>>
openScriptWeights(const std::string &path);

} // namespace monarch::runtime
