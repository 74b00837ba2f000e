//===- Workspace.cpp - workspace of kernels, by formula -------------------===//
//
// Nearly all kernels need none. Those that do: attention (blocks of scores, or
// whole scores where it is spelled out), log-sum-exp (exponentials), copies of
// operands in the common type of mixed arithmetic, and results that come out
// strided: they are copied once.
//
//===----------------------------------------------------------------------===//
#include "core/registry/Workspace.h"

#include <algorithm>
#include <array>

namespace monarch {

namespace {

using Tensors = std::vector<TensorType>;

/// Rows of queries and of keys that the flash kernel holds at once
/// (aten/src/ATen/native/cpu/FlashAttentionKernel.cpp).
int64_t queryBlock(int64_t queries) {
  int64_t rows = queries >= 768 ? 256 : queries >= 192 ? 64 : 32;
  return std::min(rows, queries);
}
int64_t keyBlock(int64_t keys) { return std::min<int64_t>(512, keys); }

int64_t largestBytes(const Tensors &tensors) {
  int64_t largest = 0;
  for (const TensorType &tensor : tensors)
    largest = std::max(largest, byteCount(tensor));
  return largest;
}

/// Operands of attention, forward or backward.
struct Attention {
  const TensorType &q, &k, &v;
  const TensorType *mask;

  /// Scores are in float32, float64 for float64.
  int64_t width() const { return q.type == DType::Float64 ? 8 : 4; }
  int64_t queries() const { return q.shape[2]; }
  int64_t keys() const { return k.shape[2]; }
  /// Bytes of all scores.
  int64_t scores() const {
    return q.shape[0] * q.shape[1] * queries() * keys() * width();
  }
  bool isFlash() const {
    return q.shape[3] == v.shape[3] && elementCount(q) > 0 &&
           elementCount(k) > 0;
  }
  /// A bool mask becomes an additive one.
  int64_t maskCopy() const {
    if (!mask || mask->type == q.type)
      return 0;
    int64_t count = elementCount(*mask);
    return count * width() + (mask->type == DType::Bool ? count : 0);
  }
};

int64_t attentionBytes(const Attention &at, const Tensors &results) {
  // The result is strided, (B, rows, H, width), and is copied.
  int64_t strided = byteCount(results[0]);
  if (!at.isFlash())
    return std::max(strided, 3 * at.scores() + byteCount(at.v)) + at.maskCopy();
  int64_t rows = queryBlock(at.queries());
  int64_t blocks =
      rows * (keyBlock(at.keys()) + 2 + at.q.shape[3]) * at.width();
  return std::max(strided, blocks + at.maskCopy());
}

int64_t attentionBackwardBytes(const Attention &at, const Tensors &results) {
  int64_t strided = largestBytes(results);
  const TensorType &last = results.back();
  bool wantsMask =
      at.mask && last.shape == at.mask->shape && last.shape != at.v.shape;
  if (!at.isFlash() || wantsMask)
    return std::max(strided,
                    5 * at.scores() + byteCount(at.q) + byteCount(at.v)) +
           at.maskCopy();
  int64_t rows = queryBlock(at.queries());
  int64_t blocks = rows * (2 * keyBlock(at.keys()) + 1) * at.width();
  // The gradient is copied when its rows are not outermost.
  return std::max(strided, blocks + byteCount(at.q) + at.maskCopy());
}

/// Elements of a window at each place of one side, over all rows.
int64_t columnCount(const TensorType &weight, const TensorType &places) {
  if (weight.shape[0] == 0 || places.shape[1] == 0)
    return 0;
  return elementCount(weight) / weight.shape[0] * elementCount(places) /
         places.shape[1];
}

/// In float64 windows are laid out as columns; groups run one by one, on copies
/// of their channels.
int64_t convolutionBytes(const TensorType &x, const TensorType &weight,
                         const TensorType &y, const Tensors &results) {
  int64_t columns = 0;
  if (weight.shape[0] == y.shape[1])
    columns = columnCount(weight, y);
  if (weight.shape[0] == x.shape[1]) // transposed
    columns = std::max(columns, columnCount(weight, x));
  int64_t bytes = columns * byteWidth(x.type);
  const bool isGrouped =
      weight.shape[1] != x.shape[1] && weight.shape[0] != x.shape[1];
  const bool isDepthwise = weight.shape[1] == 1 && x.shape[1] > 1;
  if (isGrouped || isDepthwise) {
    bytes += byteCount(x) + byteCount(y);
    for (const TensorType &result : results)
      bytes += byteCount(result);
  }
  return bytes;
}

/// Two sums for each row and channel of [N, G, K, ...], float32 or wider.
int64_t groupSumBytes(const TensorType &x) {
  return 2 * x.shape[0] * x.shape[1] * x.shape[2] *
         (x.type == DType::Float64 ? 8 : 4);
}

/// Rows of the table for each id, and what is known of the id.
int64_t bagBytes(const TensorType &ids, int64_t width, int64_t rowWidth) {
  constexpr int64_t PerId = 8 * 8;
  return elementCount(ids) * (2 * width * rowWidth + PerId) + 256;
}

constexpr std::array Promoting = {
    "aten::add.Tensor", "aten::sub.Tensor",       "aten::mul.Tensor",
    "aten::div.Tensor", "aten::eq.Tensor",        "aten::ne.Tensor",
    "aten::le.Tensor",  "aten::lt.Tensor",        "aten::ge.Tensor",
    "aten::gt.Tensor",  "aten::maximum",          "aten::minimum",
    "aten::where.self", "aten::pow.Tensor_Tensor"};

/// Operands of another type than the one the arithmetic is done in are copied.
int64_t promotedBytes(const std::string &name, const Tensors &operands) {
  size_t first = name == "aten::where.self" ? 1 : 0;
  DType common = DType::Bool;
  for (size_t k = first; k < operands.size(); ++k)
    if (!operands[k].shape.empty() || operands.size() == first + 1)
      common = std::max(common, operands[k].type);
  int64_t bytes = 0;
  for (size_t k = first; k < operands.size(); ++k)
    if (operands[k].type != common)
      bytes += elementCount(operands[k]) * byteWidth(common);
  return bytes;
}

/// Copies of transposed matrices go through a square of 60 x 60 elements.
int64_t transposingBytes(const TensorType &from, const TensorType &to) {
  constexpr int64_t Square = 60 * 60;
  return from.contiguous || from.shape.size() != 2 ||
                 elementCount(from) < Square
             ? 0
             : Square * byteWidth(to.type);
}

/// Integers narrower than the sum's int64 are widened first.
int64_t widenedBytes(const TensorType &operand) {
  return isFloating(operand.type) || operand.type == DType::Int64
             ? 0
             : elementCount(operand) * byteWidth(DType::Int64);
}

/// An element-wise result has the strides of its operands when they agree, and
/// is copied.
int64_t stridedBytes(const Tensors &operands, const Tensors &results) {
  bool isStrided = false;
  if (results.size() == 1)
    for (const TensorType &operand : operands)
      if (operand.shape == results[0].shape) {
        if (operand.contiguous)
          return 0;
        isStrided = true;
      }
  return isStrided ? byteCount(results[0]) : 0;
}

bool isOneOf(const std::string &name, const auto &names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

} // namespace

int64_t elementCount(const TensorType &tensor) {
  int64_t count = 1;
  for (int64_t size : tensor.shape)
    count *= size;
  return count;
}

int64_t byteCount(const TensorType &tensor) {
  return elementCount(tensor) * byteWidth(tensor.type);
}

int64_t workspaceBytes(const std::string &name, const Tensors &operands,
                       const Tensors &results) {
  if (name == "monarch::attention")
    return attentionBytes({operands[0], operands[1], operands[2],
                           operands.size() > 3 ? &operands[3] : nullptr},
                          results);
  if (name == "monarch::attention_backward")
    return attentionBackwardBytes(
        {operands[1], operands[2], operands[3],
         operands.size() > 6 ? &operands[4] : nullptr},
        results);
  // The mask in the type of x, and its product.
  if (name == "monarch::dropout" || name == "monarch::dropout_backward")
    return byteCount(results[0]);
  // Several dims are rolled one after the other.
  if (name == "aten::roll")
    return byteCount(results[0]);
  if (name == "aten::logsumexp")
    return byteCount(operands[0]) + byteCount(results[0]);
  // The errors and their squares.
  if (name == "aten::mse_loss" && results[0].shape.empty())
    return 2 * largestBytes(operands);
  // Two rows of sums a thread.
  if (name == "aten::native_layer_norm_backward" && operands.size() > 4)
    return 2 * byteCount(operands[4]);
  if (name == "aten::convolution")
    return convolutionBytes(operands[0], operands[1], results[0], results);
  if (name == "aten::convolution_backward")
    return convolutionBytes(operands[1], operands[2], operands[0], results);
  if (name == "monarch::embedding_bag")
    return bagBytes(operands[1], byteWidth(operands[0].type),
                    operands[0].shape[1]);
  if (name == "monarch::embedding_bag_backward") {
    // The ids are the first integers.
    auto ids = std::find_if(
        operands.begin(), operands.end(),
        [](const TensorType &operand) { return !isFloating(operand.type); });
    return bagBytes(*ids, byteWidth(operands[0].type), operands[0].shape[1]);
  }
  // Sums and centred squares; the gradient once more.
  if (name == "monarch::batch_norm")
    return 2 * byteCount(results[1]);
  if (name == "monarch::batch_norm_backward")
    return byteCount(operands[1]);
  if (name == "monarch::group_norm_backward")
    return groupSumBytes(operands[1]);
  // Resampled with channels innermost.
  if (name.starts_with("aten::upsample_"))
    return byteCount(operands[0]) + byteCount(results[0]);
  if (name == "aten::clone" || name == "aten::_to_copy")
    return transposingBytes(operands[0], results[0]);
  if (name == "aten::index_select")
    return operands[0].contiguous ? 0 : byteCount(operands[0]);
  if (name == "aten::sum" || name == "aten::sum.dim_IntList")
    return widenedBytes(operands[0]);
  int64_t strided = stridedBytes(operands, results);
  if (isOneOf(name, Promoting))
    return std::max(strided, promotedBytes(name, operands));
  return strided;
}

} // namespace monarch
