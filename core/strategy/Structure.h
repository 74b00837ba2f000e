//===- Structure.h - sections and factors of every value ------------------===//
//
// A fixpoint over the whole graph: equal labels of an op, a gradient and the
// values whose cotangent it is, a parameter and its gradients, a buffer and its
// update have one structure dim by dim. Splits, slices and concatenations cut
// a dim into sections; views make products of factors. The result depends on
// the graph alone.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/registry/Rule.h"

namespace monarch {

/// Smallest runs of dims with equal products, size 1 dims left out: the dims of
/// a view's operand and result that hold the same elements in row-major order.
struct RowMajorGroup {
  std::vector<int> operandDims;
  std::vector<int> resultDims;
  bool isOneToOne() const {
    return operandDims.size() == 1 && resultDims.size() == 1;
  }
};

/// Empty for tensors without elements.
std::vector<RowMajorGroup>
rowMajorGroups(const std::vector<int64_t> &operandShape,
               const std::vector<int64_t> &resultShape);

/// Per value. `rules` per op, null: no rule, the op relates nothing.
std::vector<TensorStructure>
inferStructures(const Graph &graph, const std::vector<const OpRule *> &rules);

} // namespace monarch
