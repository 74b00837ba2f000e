//===- Softmax.cpp - rules and bodies of softmax --------------------------===//
//
// Other dims are split as they are; the normalised dim by a body: the largest
// and the sum of exponentials over all ranks forward, one sum backward.
//
//===----------------------------------------------------------------------===//
#include "core/registry/Registry.h"

namespace monarch {

namespace {

std::optional<OpRule> softmax(const OpView &op) { return elementwise(op); }

/// (gradient, output, dim, input_dtype).
std::optional<OpRule> softmaxBackward(const OpView &op) {
  OpRule rule = elementwise(op);
  addLinear(rule, {0});
  return rule;
}

} // namespace

void addSoftmaxRules(RuleTable &table) {
  table["aten::_softmax"] = softmax;
  table["aten::_log_softmax"] = softmax;
  table["aten::_softmax_backward_data"] = softmaxBackward;
  table["aten::_log_softmax_backward_data"] = softmaxBackward;
}

} // namespace monarch
