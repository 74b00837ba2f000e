//===- Activations.cpp - rules of less common elementwise functions -------===//
//
// As in Elementwise.cpp: every dim may be split; derivatives pass a partial
// gradient on.
//
//===----------------------------------------------------------------------===//
#include "core/registry/Registry.h"

#include <array>

namespace monarch {

namespace {

std::optional<OpRule> nonlinear(const OpView &op) { return elementwise(op); }

std::optional<OpRule> derivative(const OpView &op) {
  OpRule rule = elementwise(op);
  addLinear(rule, {0});
  return rule;
}

constexpr std::array Nonlinear = {
    "aten::softplus",
    "aten::leaky_relu",
    "aten::elu",
    "aten::hardswish",
    "aten::hardtanh",
    "aten::floor_divide",
    "aten::log_sigmoid_forward",
    "aten::mish",
    "aten::celu",
    "aten::hardsigmoid",
    "aten::sgn",
    "aten::clamp_min.Tensor",
    "aten::_prelu_kernel",
};

constexpr std::array Derivatives = {
    "aten::softplus_backward",      "aten::leaky_relu_backward",
    "aten::elu_backward",           "aten::hardswish_backward",
    "aten::mish_backward",          "aten::hardsigmoid_backward",
    "aten::_prelu_kernel_backward", "aten::hardtanh_backward",
    "aten::log_sigmoid_backward",
};

} // namespace

void addActivationRules(RuleTable &table) {
  for (const char *name : Nonlinear)
    table[name] = nonlinear;
  for (const char *name : Derivatives)
    table[name] = derivative;
}

} // namespace monarch
