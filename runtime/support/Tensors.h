//===- Tensors.h - between the project's types and LibTorch's -------------===//
//
// Element types, errors out of LibTorch's exceptions, and the index arithmetic
// that cuts a whole tensor into a rank's block and back.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/graph/Graph.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace monarch::runtime {

at::ScalarType scalarTypeOf(DType type);
/// Nothing when the project has no name for the type.
std::optional<DType> dtypeOf(at::ScalarType type);

/// Uninitialised and contiguous; zeros.
at::Tensor emptyTensor(DType type, const std::vector<int64_t> &shape);
at::Tensor zeroTensor(DType type, const std::vector<int64_t> &shape);

/// A contiguous tensor as one-dimensional bytes, sharing its storage.
at::Tensor bytesOf(const at::Tensor &tensor);

/// Per dim the positions that a block holds.
using BlockIndices = std::vector<std::vector<int64_t>>;
/// whole[indices[0], indices[1], ...], contiguous and in storage of its own.
at::Tensor takeBlock(const at::Tensor &whole, const BlockIndices &indices);
/// The inverse, in place.
void putBlock(at::Tensor &whole, const BlockIndices &indices,
              const at::Tensor &block);

/// "[4, 8]".
std::string shapeText(at::IntArrayRef shape);

/// First line of an exception's text, without LibTorch's backtrace.
std::string messageOf(const std::exception &exception);

} // namespace monarch::runtime
