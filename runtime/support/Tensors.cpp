//===- Tensors.cpp - between the project's types and LibTorch's -----------===//
//
// See Tensors.h.
//
//===----------------------------------------------------------------------===//
#include "runtime/support/Tensors.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace monarch::runtime {

at::ScalarType scalarTypeOf(DType type) {
  switch (type) {
  case DType::Bool:
    return at::kBool;
  case DType::UInt8:
    return at::kByte;
  case DType::Int8:
    return at::kChar;
  case DType::Int16:
    return at::kShort;
  case DType::Int32:
    return at::kInt;
  case DType::Int64:
    return at::kLong;
  case DType::Float16:
    return at::kHalf;
  case DType::BFloat16:
    return at::kBFloat16;
  case DType::Float32:
    return at::kFloat;
  case DType::Float64:
    return at::kDouble;
  case DType::Float8E4M3:
    return at::kFloat8_e4m3fn;
  case DType::Float8E5M2:
    return at::kFloat8_e5m2;
  case DType::Complex64:
    return at::kComplexFloat;
  case DType::Complex128:
    return at::kComplexDouble;
  }
  return at::kFloat;
}

std::optional<DType> dtypeOf(at::ScalarType type) {
  for (int i = 0; i <= static_cast<int>(LastDType); ++i)
    if (scalarTypeOf(static_cast<DType>(i)) == type)
      return static_cast<DType>(i);
  return std::nullopt;
}

at::Tensor emptyTensor(DType type, const std::vector<int64_t> &shape) {
  return at::empty(shape, at::TensorOptions(scalarTypeOf(type)));
}

at::Tensor zeroTensor(DType type, const std::vector<int64_t> &shape) {
  return at::zeros(shape, at::TensorOptions(scalarTypeOf(type)));
}

at::Tensor bytesOf(const at::Tensor &tensor) {
  // from_blob rather than view(dtype): the latter refuses bool and scalars.
  // The deleter holds the tensor, so an asynchronous send may outlive it.
  return at::from_blob(
      tensor.data_ptr(), {static_cast<int64_t>(tensor.nbytes())},
      [tensor](void *) {}, at::TensorOptions(at::kByte));
}

namespace {

/// [begin, begin + 1, ...]: then a block is a view, and copies once.
bool isRange(const std::vector<int64_t> &indices) {
  for (size_t i = 1; i < indices.size(); ++i)
    if (indices[i] != indices[0] + static_cast<int64_t>(i))
      return false;
  return !indices.empty();
}

at::Tensor indexTensor(const std::vector<int64_t> &indices) {
  at::Tensor tensor = at::empty({static_cast<int64_t>(indices.size())},
                                at::TensorOptions(at::kLong));
  std::copy(indices.begin(), indices.end(), tensor.data_ptr<int64_t>());
  return tensor;
}

} // namespace

namespace {

/// Types of eight bits are moved as bytes: LibTorch selects no others.
at::Tensor asMovable(const at::Tensor &tensor) {
  bool isNarrow = tensor.scalar_type() == at::kFloat8_e4m3fn ||
                  tensor.scalar_type() == at::kFloat8_e5m2;
  return isNarrow ? tensor.view(at::kByte) : tensor;
}

} // namespace

at::Tensor takeBlock(const at::Tensor &tensor, const BlockIndices &indices) {
  at::Tensor whole = asMovable(tensor);
  at::Tensor block = whole;
  for (size_t dim = 0; dim < indices.size(); ++dim) {
    int64_t count = static_cast<int64_t>(indices[dim].size());
    if (isRange(indices[dim]))
      block = block.narrow(dim, indices[dim][0], count);
    else
      block = block.index_select(dim, indexTensor(indices[dim]));
  }
  if (!block.is_contiguous() || block.is_alias_of(whole))
    block = block.clone(at::MemoryFormat::Contiguous);
  return block.scalar_type() == tensor.scalar_type()
             ? block
             : block.view(tensor.scalar_type());
}

void putBlock(at::Tensor &tensor, const BlockIndices &indices,
              const at::Tensor &given) {
  at::Tensor whole = asMovable(tensor), block = asMovable(given);
  std::vector<size_t> scattered;
  at::Tensor target = whole;
  for (size_t dim = 0; dim < indices.size(); ++dim) {
    if (indices[dim].empty())
      return;
    if (isRange(indices[dim]))
      target = target.narrow(dim, indices[dim][0],
                             static_cast<int64_t>(indices[dim].size()));
    else
      scattered.push_back(dim);
  }
  if (scattered.empty()) {
    target.copy_(block);
    return;
  }
  // One index tensor per dim, each along its own dim, broadcast against all.
  c10::List<std::optional<at::Tensor>> positions;
  for (size_t dim = 0; dim < indices.size(); ++dim) {
    std::vector<int64_t> shape(indices.size(), 1);
    shape[dim] = static_cast<int64_t>(indices[dim].size());
    positions.push_back(indexTensor(indices[dim]).view(shape));
  }
  whole.index_put_(positions, block);
}

std::string shapeText(at::IntArrayRef shape) {
  return fmt::format("[{}]", fmt::join(shape.begin(), shape.end(), ", "));
}

std::string messageOf(const std::exception &exception) {
  std::string text;
  if (auto *error = dynamic_cast<const c10::Error *>(&exception))
    text = error->what_without_backtrace();
  else
    text = exception.what();
  return text.substr(0, text.find('\n'));
}

} // namespace monarch::runtime
