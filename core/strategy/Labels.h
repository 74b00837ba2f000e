//===- Labels.h - labels of the slots of an op ----------------------------===//
//
// A slot is one factor of one section of one dim of an operand or result; what
// an axis can cut. The rule's labels of dims, spread over the slots, say which
// slots of an op are cut together. Operands and results in one row (results
// after operands) are called ports.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/registry/Rule.h"
#include "core/strategy/Strategies.h"

namespace monarch {

/// All ops with one rule and one structure share this: what does not depend on
/// which values an op has.
struct OpKind {
  /// Null: no rule.
  const OpRule *rule = nullptr;
  size_t operandCount = 0;
  /// Per port; an undefined result has no dims.
  std::vector<TensorStructure> structures;
  std::vector<DType> types;

  /// Sorted; the indices are the op's label numbers.
  std::vector<SlotLabel> labels;
  struct LabeledSlot {
    int dim;
    int section;
    int factor;
    int label;
  };
  /// Per port.
  std::vector<std::vector<LabeledSlot>> slots;

  /// Rule's labels of a port (not of views).
  const std::vector<DimLabel> &dimLabels(size_t port) const {
    return port < operandCount ? rule->operands[port]
                               : rule->results[port - operandCount];
  }
  /// -1: the op has no such label.
  int find(const SlotLabel &label) const;
};

/// Fills `labels` and `slots` from the rest.
void labelSlots(OpKind &kind);

/// These labels (numbers, sorted) may be split together: one dim of each port,
/// one factor in each of its sections, and every port that carries a label is
/// split. No labels: legal.
bool isLegalSplit(const OpKind &kind, const std::vector<int> &labels);

/// The column of a legal split, or of a linear group (labels empty).
Column makeColumn(const OpKind &kind, const std::vector<int> &labels,
                  int linearGroup);

} // namespace monarch
