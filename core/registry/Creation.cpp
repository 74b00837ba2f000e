//===- Creation.cpp - rules of tensors made from nothing ------------------===//
//
// Every dim of the result may be split: a constant fills the local shape, a
// range takes the local index list. Operands give their shape and type only.
//
//===----------------------------------------------------------------------===//
#include "core/registry/Registry.h"

namespace monarch {

namespace {

std::optional<OpRule> filled(const OpView &op) {
  OpRule rule = elementwise(op);
  for (size_t k = 0; k < op.operandCount(); ++k)
    rule.shapeOnly.push_back(static_cast<int>(k));
  // new_zeros and the like: the operand's shape is not the result's.
  if (op.operandCount() > 0 && op.shape(0) != op.resultShape(0))
    rule.operands[0] = Labels(op.shape(0).size());
  return rule;
}

std::optional<OpRule> range(const OpView &op) {
  OpRule rule = unlabelled(op);
  rule.results[0] = labels({"i"});
  return rule;
}

} // namespace

void addCreationRules(RuleTable &table) {
  for (const char *name :
       {"aten::full", "aten::zeros", "aten::ones", "aten::new_zeros",
        "aten::new_ones", "aten::new_full", "aten::zeros_like",
        "aten::ones_like", "aten::full_like", "aten::scalar_tensor"})
    table[name] = filled;
  for (const char *name :
       {"aten::arange", "aten::arange.start", "aten::arange.start_step"})
    table[name] = range;
}

} // namespace monarch
