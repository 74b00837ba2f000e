//===- Rule.h - how an op may be split ------------------------------------===//
//
// One entry an op: labels of operand and result dims as in an einsum, what a
// split of each label makes of the operands and results that lack it, which
// operands pass partial sums on, which are looked at for their shape only, and
// how the op becomes local instructions. Planner and partitioner read rules,
// never op names.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/graph/Graph.h"
#include "core/layout/Layout.h"

#include <functional>

namespace monarch {

/// Label of one dim of an operand or result. Empty name: the dim has no label
/// (size 1 that broadcasts, or whole). `begin, end` != 0..whole: the dim is
/// this section of the label's full extent (split, slice, cat along a dim).
struct DimLabel {
  std::string name;
  int64_t begin = 0;
  int64_t end = -1; // -1: the whole extent
  bool operator==(const DimLabel &) const = default;
};

/// What splitting a label does beyond the dims that carry it.
struct LabelEffect {
  /// Never split.
  bool whole = false;
  /// State of each operand and result without the label; empty: all replicated.
  /// (mm's k: result partial. addmm's k: the bias partial, the result partial.)
  std::vector<AxisStateKind> operands;
  std::vector<AxisStateKind> results;
};

/// Operands that may be partial together (the op is linear in them jointly);
/// the results listed become partial, the others stay replicated.
struct LinearGroup {
  std::vector<int> operands;
  std::vector<int> partialResults;
};

class Lowering;

struct OpRule {
  std::vector<std::vector<DimLabel>> operands;
  std::vector<std::vector<DimLabel>> results;
  std::map<std::string, LabelEffect> effects;
  std::vector<LinearGroup> linear;
  /// Operands whose elements are not read: never resharded for this op.
  std::vector<int> shapeOnly;
  /// The result's dims are the operand's, regrouped row-major (view, reshape,
  /// unsqueeze, squeeze): labels come from matching factors, not from names.
  bool isView = false;
  /// A view, transpose or cast: follows its neighbour, no decision of its own.
  bool follows = false;
  /// Writes the local instructions. Null: one call of the op itself, with sizes
  /// taken from the local results.
  std::function<void(Lowering &)> lower;
};

/// The rule of an op with these operand and result types (None results have
/// empty labels); nullopt: no rule, the op stays whole and replicated.
std::optional<OpRule> ruleOf(const Graph &graph, const Op &op);
/// Names of all registered ops, sorted.
std::vector<std::string> registeredOps();

/// What one call costs on tensors of these (local) shapes; also the calls
/// inside local bodies. Bytes are operand reads plus result writes unless the
/// op differs (views: 0); workspace is what the kernel allocates beyond its
/// results.
struct CallCost {
  int64_t flops = 0;
  int64_t bytes = 0;
  int64_t workspaceBytes = 0;
};
struct TensorType {
  DType type = DType::Float32;
  std::vector<int64_t> shape;
  /// Kernels copy some operands that are not.
  bool contiguous = true;
};
CallCost callCost(const std::string &name,
                  const std::vector<TensorType> &operands,
                  const std::vector<TensorType> &results);
/// True for ops whose result shares its operand's storage when strides allow
/// (aten::view, t, transpose, expand, slice, select, split, unsqueeze, ...).
bool isViewCall(const std::string &name);

} // namespace monarch
