//===- CallCost.cpp - arithmetic and bytes of one call --------------------===//
//
// FLOPs count a multiply-add as two. Elementwise work is counted once per
// result element: it is bound by bytes. Attention counts what the flash kernel
// does: forward q k^T and p v; backward those of five products instead of two.
//
//===----------------------------------------------------------------------===//
#include "core/registry/UserRules.h"
#include "core/registry/Workspace.h"

#include <algorithm>

namespace monarch {

namespace {

int64_t byteCount(const std::vector<TensorType> &tensors) {
  int64_t bytes = 0;
  for (const TensorType &tensor : tensors)
    bytes += monarch::byteCount(tensor);
  return bytes;
}

/// Multiply-adds of a [.., m, k] x [.., k, n] product with this left factor.
int64_t productFlops(const TensorType &left, const TensorType &result) {
  if (left.shape.empty())
    return 0;
  return 2 * left.shape.back() * elementCount(result);
}

using Tensors = std::vector<TensorType>;

bool isProduct(const std::string &name) {
  return name == "aten::mm" || name == "aten::bmm" || name == "aten::addmm" ||
         name == "aten::baddbmm";
}

/// Only what is looked up is read of a table.
bool readsResultOnly(const std::string &name) {
  return name == "aten::embedding" || name == "aten::index_select" ||
         name == "aten::index.Tensor" || name == "aten::gather";
}

/// q [B,H,Q,D], k [B,H,S,D]: 2 * B*H*Q*S * (D + E).
int64_t attentionFlops(const TensorType &q, const TensorType &k,
                       const TensorType &v) {
  return 2 * q.shape[0] * q.shape[1] * q.shape[2] * k.shape[2] *
         (q.shape[3] + v.shape[3]);
}

/// Multiply-adds of a convolution with these weights; weights of a transposed
/// one have input channels first.
int64_t convolutionFlops(const TensorType &x, const TensorType &weight,
                         const TensorType &y) {
  const bool isTransposed = weight.shape[0] != y.shape[1];
  const int64_t first = std::max<int64_t>(weight.shape[0], 1);
  return 2 * elementCount(isTransposed ? x : y) *
         (elementCount(weight) / first);
}

/// Results with as many dims as this operand: all but the bias' gradient.
int64_t resultsLike(const TensorType &operand, const Tensors &results) {
  return std::count_if(results.begin(), results.end(),
                       [&](const TensorType &result) {
                         return result.shape.size() == operand.shape.size();
                       });
}

/// x [rows, k], weight [groups, k, n]: each row meets one matrix.
int64_t groupedFlops(const TensorType &x, const TensorType &weight) {
  return 2 * elementCount(x) * weight.shape[2];
}

} // namespace

CallCost callCost(const std::string &name, const Tensors &operands,
                  const Tensors &results) {
  if (isViewCall(name))
    return {};
  CallCost cost;
  cost.workspaceBytes = workspaceBytes(name, operands, results);
  cost.bytes = byteCount(operands) + byteCount(results);
  for (const TensorType &result : results)
    cost.flops += elementCount(result);
  if (isProduct(name)) {
    size_t left = operands.size() == 3 ? 1 : 0;
    cost.flops = productFlops(operands[left], results[0]);
  } else if (name == "monarch::attention") {
    cost.flops = attentionFlops(operands[0], operands[1], operands[2]);
  } else if (name == "monarch::attention_backward") {
    cost.flops = attentionFlops(operands[1], operands[2], operands[3]) * 5 / 2;
  } else if (name == "aten::convolution") {
    cost.flops = convolutionFlops(operands[0], operands[1], results[0]);
  } else if (name == "aten::convolution_backward") {
    cost.flops = resultsLike(operands[1], results) *
                 convolutionFlops(operands[1], operands[2], operands[0]);
  } else if (name == "monarch::grouped_mm") {
    cost.flops = groupedFlops(operands[0], operands[1]);
  } else if (name == "monarch::grouped_mm_backward") {
    cost.flops = static_cast<int64_t>(results.size()) *
                 groupedFlops(operands[1], operands[2]);
  } else if (name == "monarch::embedding_bag") {
    // One row of the table for each id.
    const int64_t read = elementCount(operands[1]) * operands[0].shape[1];
    cost.flops = read;
    cost.bytes +=
        read * byteWidth(operands[0].type) - monarch::byteCount(operands[0]);
  } else if (readsResultOnly(name)) {
    cost.bytes = 2 * byteCount(results) + byteCount(operands) -
                 byteCount(operands.front());
  } else if (auto flops = userFlops(name, operands, results)) {
    cost.flops = *flops;
  }
  return cost;
}

} // namespace monarch
