//===- ActivationSamples.cpp - samples of less common functions -----------===//

#include "test/strategies/Samples.h"

namespace monarch::test {

namespace {

using Builder = SampleBuilder;
using Shape = Builder::Shape;
using Rest = std::vector<Arg>;

ValueId operand(Builder &b) {
  ValueId x = b.normal({6, 5});
  b.factors(x, {2, 3, 5});
  return x;
}

SampleMaker function(const std::string &name, Rest rest = {}) {
  return one([=](Builder &b) {
    b.run(name, {operand(b)}, operandArgs(1, rest), {6, 5});
  });
}

SampleMaker derivative(const std::string &name, Rest rest) {
  return one([=](Builder &b) {
    b.run(name, {operand(b), operand(b)}, operandArgs(2, rest), {6, 5});
  });
}

} // namespace

void addActivationSamples(SampleTable &table) {
  table["aten::softplus"] =
      function("aten::softplus", {int64_t(1), int64_t(20)});
  table["aten::leaky_relu"] = function("aten::leaky_relu", {0.1});
  table["aten::elu"] = function("aten::elu", {1.5, int64_t(1), int64_t(1)});
  for (const char *name : {"aten::mish", "aten::hardsigmoid", "aten::sgn"})
    table[name] = function(name);
  table["aten::celu"] = function("aten::celu", {1.5});
  for (const char *name : {"aten::mish_backward", "aten::hardsigmoid_backward"})
    table[name] = derivative(name, {});
  for (const char *name : {"aten::clamp_min.Tensor", "aten::_prelu_kernel"})
    table[name] = one([=](Builder &b) {
      b.run(name, {operand(b), b.normal({6, 1})}, operandArgs(2), {6, 5});
    });
  table["aten::_prelu_kernel_backward"] = one([](Builder &b) {
    b.runAll("aten::_prelu_kernel_backward",
             {operand(b), operand(b), b.normal({6, 1})}, operandArgs(3),
             Builder::Shapes{Shape{6, 5}, Shape{6, 5}});
  });
  table["aten::hardswish"] = function("aten::hardswish");
  table["aten::hardtanh"] = function("aten::hardtanh", {-0.5, 0.5});
  table["aten::floor_divide"] = function("aten::floor_divide", {0.4});
  table["aten::log_sigmoid_forward"] = one([](Builder &b) {
    b.runAll("aten::log_sigmoid_forward", {operand(b)}, operandArgs(1),
             Builder::Shapes{Shape{6, 5}, Shape{6, 5}});
  });
  table["aten::log_sigmoid_backward"] = one([](Builder &b) {
    ValueId x = operand(b);
    ValueId buffer = b.runAll("aten::log_sigmoid_forward", {x}, operandArgs(1),
                              Builder::Shapes{Shape{6, 5}, Shape{6, 5}})[1];
    b.run("aten::log_sigmoid_backward", {b.normal({6, 5}), x, buffer},
          operandArgs(3), {6, 5});
  });
  table["aten::softplus_backward"] =
      derivative("aten::softplus_backward", {int64_t(1), int64_t(20)});
  table["aten::leaky_relu_backward"] =
      derivative("aten::leaky_relu_backward", {0.1, false});
  table["aten::elu_backward"] = one([](Builder &b) {
    b.run("aten::elu_backward", {operand(b), operand(b)},
          {OperandArg{0}, 1.5, int64_t(1), int64_t(1), false, OperandArg{1}},
          {6, 5});
  });
  table["aten::hardswish_backward"] =
      derivative("aten::hardswish_backward", {});
  table["aten::hardtanh_backward"] =
      derivative("aten::hardtanh_backward", {-0.5, 0.5});
}

} // namespace monarch::test
