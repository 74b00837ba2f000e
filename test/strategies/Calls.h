//===- Calls.h - boxed LibTorch calls with literals of a graph or program -===//
//
// Converts literals by the schema's argument types and calls the dispatcher.
// Sizes of results are given by the caller: of the whole op, or of a rank.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/layout/Expr.h"
#include "core/program/Program.h"

#include <ATen/core/Tensor.h>

namespace monarch::test {

at::ScalarType scalarType(DType type);
DType dtypeOf(at::ScalarType type);

/// Undefined tensors stand for absent results.
std::vector<at::Tensor> callGraphOp(const Op &op,
                                    const std::vector<at::Tensor> &operands,
                                    const Graph &graph);
std::vector<at::Tensor> callInstruction(const Instruction &instruction,
                                        const std::vector<at::Tensor> &operands,
                                        const RankView &rank);

} // namespace monarch::test
