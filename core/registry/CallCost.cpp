//===- CallCost.cpp - arithmetic and bytes of one call --------------------===//
//
// FLOPs count a multiply-add as two. Elementwise work is counted once per
// result element: it is bound by bytes. Attention counts what the flash kernel
// does: forward q k^T and p v; backward those of five products instead of two.
//
//===----------------------------------------------------------------------===//
#include "core/registry/Workspace.h"

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
  } else if (readsResultOnly(name)) {
    cost.bytes = 2 * byteCount(results) + byteCount(operands) -
                 byteCount(operands.front());
  }
  return cost;
}

} // namespace monarch
