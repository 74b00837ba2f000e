//===- Pt2Weights.h - the weights inside a .pt2 ---------------------------===//
//
// torch.export's archive has two tables, FQN -> record, one for weights and one
// for constants. Only they and the records asked for are read.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/data/Sources.h"

namespace monarch::runtime {

Expected<std::unique_ptr<WeightSource>> openPt2Weights(const std::string &path);

} // namespace monarch::runtime
