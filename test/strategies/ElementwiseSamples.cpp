//===- ElementwiseSamples.cpp - samples of elementwise ops ----------------===//
//
// Dims with factors, a dim in sections, operands that repeat.
//
//===----------------------------------------------------------------------===//
#include "test/strategies/Samples.h"

namespace monarch::test {

namespace {

using Builder = SampleBuilder;

/// Extra arguments after the operands.
using Rest = std::vector<Arg>;

/// [6, 5, 4] with the first dim 2 x 3.
ValueId threeDims(Builder &b, bool isPositive = false) {
  ValueId x = isPositive ? b.positive({6, 5, 4}) : b.normal({6, 5, 4});
  b.factors(x, {2, 3, 5, 4});
  return x;
}

SampleMaker unary(const std::string &name, Rest rest = {},
                  bool isPositive = false) {
  return several(
      {[=](Builder &b) {
         b.run(name, {threeDims(b, isPositive)}, operandArgs(1, rest),
               {6, 5, 4});
       },
       [=](Builder &b) {
         ValueId x = isPositive ? b.positive({3, 11}) : b.normal({3, 11});
         b.sections(x, 1, {4, 4, 3});
         b.run(name, {x}, operandArgs(1, rest), {3, 11});
       }});
}

/// Equal shapes, an operand that repeats, a number in place of the second.
SampleMaker binary(const std::string &name, Rest rest = {},
                   bool takesNumber = true) {
  std::vector<std::function<void(Builder &)>> builds = {
      [=](Builder &b) {
        b.run(name, {threeDims(b), threeDims(b)}, operandArgs(2, rest),
              {6, 5, 4});
      },
      [=](Builder &b) {
        b.run(name, {threeDims(b), b.positive({5, 1})}, operandArgs(2, rest),
              {6, 5, 4});
      },
      [=](Builder &b) {
        b.run(name, {b.normal({1, 5, 1}), b.positive({6, 1, 4})},
              operandArgs(2, rest), {6, 5, 4});
      }};
  if (takesNumber)
    builds.push_back([=](Builder &b) {
      std::vector<Arg> args = {OperandArg{0}, 1.75};
      args.insert(args.end(), rest.begin(), rest.end());
      b.run(name, {threeDims(b)}, args, {6, 5, 4});
    });
  return several(std::move(builds));
}

SampleMaker logical(const std::string &name, int operands) {
  return one([=](Builder &b) {
    std::vector<ValueId> values = {b.booleans({6, 5}), b.booleans({5})};
    values.resize(operands);
    b.factors(values[0], {2, 3, 5});
    b.run(name, values, operandArgs(operands), {6, 5});
  });
}

/// f'(x) * g, the derivative taken at a forward operand or result.
SampleMaker derivative(const std::string &name, Rest rest = {},
                       const std::string &forward = "") {
  return one([=](Builder &b) {
    ValueId gradient = threeDims(b), saved = threeDims(b);
    if (!forward.empty())
      saved = b.run(forward, {saved}, operandArgs(1), {6, 5, 4});
    b.run(name, {gradient, saved}, operandArgs(2, rest), {6, 5, 4});
  });
}

} // namespace

void addElementwiseSamples(SampleTable &table) {
  for (const char *name : {"exp", "expm1", "erf", "cos", "sin", "tanh", "silu",
                           "relu", "sigmoid", "abs", "sign", "neg", "isnan"})
    table["aten::" + std::string(name)] = unary("aten::" + std::string(name));
  for (const char *name : {"rsqrt", "sqrt", "log", "log1p", "reciprocal"})
    table["aten::" + std::string(name)] =
        unary("aten::" + std::string(name), {}, /*isPositive=*/true);
  table["aten::gelu"] =
      several({[](Builder &b) {
                 b.run("aten::gelu", {threeDims(b)},
                       {OperandArg{0}, std::string("tanh")}, {6, 5, 4});
               },
               [](Builder &b) {
                 b.run("aten::gelu", {threeDims(b)},
                       {OperandArg{0}, std::string("none")}, {6, 5, 4});
               }});
  table["aten::pow.Tensor_Scalar"] =
      unary("aten::pow.Tensor_Scalar", {int64_t(3)});
  table["aten::pow.Scalar"] = one([](Builder &b) {
    b.run("aten::pow.Scalar", {threeDims(b)}, {2.5, OperandArg{0}}, {6, 5, 4});
  });
  table["aten::pow.Tensor_Tensor"] = one([](Builder &b) {
    b.run("aten::pow.Tensor_Tensor", {threeDims(b, true), b.normal({5, 4})},
          operandArgs(2), {6, 5, 4});
  });
  table["aten::clamp"] = unary("aten::clamp", {-0.5, std::monostate()});
  table["aten::clamp_min"] = unary("aten::clamp_min", {-0.25});
  table["aten::add.Scalar"] = unary("aten::add.Scalar", {1.5, int64_t(2)});
  table["aten::sub.Scalar"] = unary("aten::sub.Scalar", {1.5, int64_t(2)});
  table["aten::rsub.Scalar"] = unary("aten::rsub.Scalar", {1.5, int64_t(2)});
  table["aten::mul.Scalar"] = unary("aten::mul.Scalar", {1.5});
  table["aten::div.Scalar"] = unary("aten::div.Scalar", {1.5});
  table["aten::add.Tensor"] = binary("aten::add.Tensor", {int64_t(2)});
  table["aten::sub.Tensor"] = binary("aten::sub.Tensor", {int64_t(1)});
  table["aten::mul.Tensor"] = binary("aten::mul.Tensor");
  table["aten::div.Tensor"] = binary("aten::div.Tensor");
  table["aten::maximum"] = binary("aten::maximum", {}, false);
  table["aten::minimum"] = binary("aten::minimum", {}, false);
  for (const char *comparison : {"eq", "ne", "le", "lt", "ge", "gt"}) {
    std::string name = "aten::" + std::string(comparison);
    table[name + ".Tensor"] = binary(name + ".Tensor", {}, false);
    table[name + ".Scalar"] = unary(name + ".Scalar", {0.25});
  }
  table["aten::logical_and"] = logical("aten::logical_and", 2);
  table["aten::logical_or"] = logical("aten::logical_or", 2);
  table["aten::logical_not"] = logical("aten::logical_not", 1);
  table["aten::bitwise_and.Tensor"] = logical("aten::bitwise_and.Tensor", 2);
  table["aten::bitwise_or.Tensor"] = logical("aten::bitwise_or.Tensor", 2);
  table["aten::bitwise_not"] = logical("aten::bitwise_not", 1);

  table["aten::gelu_backward"] =
      derivative("aten::gelu_backward", {std::string("tanh")});
  table["aten::silu_backward"] = derivative("aten::silu_backward");
  table["aten::tanh_backward"] =
      derivative("aten::tanh_backward", {}, "aten::tanh");
  table["aten::sigmoid_backward"] =
      derivative("aten::sigmoid_backward", {}, "aten::sigmoid");
  table["aten::threshold_backward"] =
      derivative("aten::threshold_backward", {int64_t(0)}, "aten::relu");

  table["aten::complex"] = one([](Builder &b) {
    b.run("aten::complex", {threeDims(b), threeDims(b)}, operandArgs(2),
          {6, 5, 4});
  });
  table["aten::polar"] = one([](Builder &b) {
    b.run("aten::polar", {threeDims(b, true), threeDims(b)}, operandArgs(2),
          {6, 5, 4});
  });
  table["aten::_conj_physical"] = one([](Builder &b) {
    ValueId x = b.complexNumbers({6, 5});
    b.factors(x, {2, 3, 5});
    b.run("aten::_conj_physical", {x}, operandArgs(1), {6, 5});
  });
  table["aten::clone"] =
      several({[](Builder &b) {
                 b.run("aten::clone", {threeDims(b)},
                       {OperandArg{0}, std::monostate()}, {6, 5, 4});
               },
               [](Builder &b) {
                 ValueId x = b.run("aten::t", {b.normal({6, 5})},
                                   operandArgs(1), {5, 6});
                 b.factors(x, {5, 2, 3});
                 b.run("aten::clone", {x}, {OperandArg{0}, int64_t(0)}, {5, 6});
               }});
  auto cast = [](DType type) {
    return [type](Builder &b) {
      b.run("aten::_to_copy", {threeDims(b)},
            {OperandArg{0}, type, {}, {}, {}, false, {}}, {6, 5, 4});
    };
  };
  table["aten::_to_copy"] =
      several({cast(DType::Float64), cast(DType::Int64), cast(DType::Bool)});
  table["aten::lerp.Tensor"] =
      several({[](Builder &b) {
                 b.run("aten::lerp.Tensor",
                       {threeDims(b), threeDims(b), b.normal({5, 1})},
                       operandArgs(3), {6, 5, 4});
               },
               [](Builder &b) {
                 b.run("aten::lerp.Tensor",
                       {b.normal({6, 1, 4}), threeDims(b), threeDims(b)},
                       operandArgs(3), {6, 5, 4});
               }});
  table["aten::lerp.Scalar"] = one([](Builder &b) {
    b.run("aten::lerp.Scalar", {threeDims(b), b.normal({5, 1})},
          operandArgs(2, {0.3}), {6, 5, 4});
  });
  table["aten::where.self"] = several(
      {[](Builder &b) {
         b.run("aten::where.self",
               {b.booleans({5, 4}), threeDims(b), b.normal({5, 1})},
               operandArgs(3), {6, 5, 4});
       },
       [](Builder &b) {
         b.run("aten::where.self", {b.booleans({6, 1, 4}), threeDims(b)},
               {OperandArg{0}, OperandArg{1}, 0.5}, {6, 5, 4});
       }});
  auto fill = [](double number) {
    return [number](Builder &b) {
      b.run("aten::masked_fill.Scalar", {threeDims(b), b.booleans({5, 1})},
            operandArgs(2, {number}), {6, 5, 4});
    };
  };
  table["aten::masked_fill.Scalar"] = several({fill(0.0), fill(-1.5)});
  table["aten::masked_fill.Tensor"] = one([](Builder &b) {
    b.run("aten::masked_fill.Tensor",
          {threeDims(b), b.booleans({5, 1}), b.normal({})}, operandArgs(3),
          {6, 5, 4});
  });
  table["aten::copy"] =
      several({[](Builder &b) {
                 b.run("aten::copy", {threeDims(b), b.normal({5, 1})},
                       operandArgs(2, {false}), {6, 5, 4});
               },
               [](Builder &b) {
                 b.run("aten::copy", {b.integers({6, 5}, 9), b.normal({6, 5})},
                       operandArgs(2, {false}), {6, 5});
               }});
}

} // namespace monarch::test
