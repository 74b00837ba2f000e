//===- ConvolutionSamples.cpp - samples of convolution and pooling --------===//

#include "test/strategies/Samples.h"

namespace monarch::test {

namespace {

using Builder = SampleBuilder;
using Shape = Builder::Shape;
using Shapes = Builder::Shapes;
using Dims = std::vector<int64_t>;

/// One convolution: shapes, and arguments from the stride on.
struct Convolution {
  Shape x, weight, y;
  bool hasBias = true;
  Dims stride, padding, dilation;
  bool isTransposed = false;
  Dims outputPadding;
  int64_t groups = 1;

  std::vector<Arg> tail() const {
    return {stride, padding, dilation, isTransposed, outputPadding, groups};
  }
};

Convolution plain() {
  return {{4, 6, 5, 4}, {4, 6, 3, 3}, {4, 4, 3, 4}, true,   {2, 1},
          {1, 1},       {1, 1},       false,        {0, 0}, 1};
}
Convolution unbiased() {
  return {{3, 4, 7}, {6, 4, 2}, {3, 6, 5}, false, {1}, {0}, {2}, false, {0}, 1};
}
Convolution transposed() {
  return {{3, 6, 3, 2}, {6, 4, 2, 2}, {3, 4, 6, 4}, true,   {2, 2},
          {0, 0},       {1, 1},       true,         {0, 0}, 1};
}
Convolution depthwise() {
  return {{3, 6, 5}, {6, 1, 3}, {3, 6, 7}, true, {1}, {2}, {1}, false, {0}, 6};
}
Convolution grouped() {
  return {{4, 6, 5}, {4, 3, 3}, {4, 4, 3}, true, {1}, {0}, {1}, false, {0}, 2};
}

struct Operands {
  ValueId x, weight, y;
};

Operands forward(Builder &b, const Convolution &conv) {
  ValueId x = b.normal(conv.x), weight = b.normal(conv.weight);
  if (conv.x[1] == 6) {
    Shape factors = conv.x;
    factors[1] = 3;
    factors.insert(factors.begin() + 1, 2);
    b.factors(x, factors);
  }
  std::vector<ValueId> operands = {x, weight};
  std::vector<Arg> args = operandArgs(2);
  if (conv.hasBias) {
    operands.push_back(b.normal({conv.y[1]}));
    args.push_back(OperandArg{2});
  } else {
    args.emplace_back();
  }
  for (const Arg &arg : conv.tail())
    args.push_back(arg);
  return {x, weight, b.run("aten::convolution", operands, args, conv.y)};
}

std::function<void(Builder &)> backward(Convolution conv,
                                        std::vector<bool> wanted) {
  return [=](Builder &b) {
    Operands of = forward(b, conv);
    std::vector<Arg> args = operandArgs(3);
    if (wanted[2])
      args.push_back(ResultSizes{2});
    else
      args.emplace_back();
    for (const Arg &arg : conv.tail())
      args.push_back(arg);
    args.push_back(wanted);
    Shapes shapes(3);
    if (wanted[0])
      shapes[0] = conv.x;
    if (wanted[1])
      shapes[1] = conv.weight;
    if (wanted[2])
      shapes[2] = Shape{conv.y[1]};
    b.runAll("aten::convolution_backward", {b.normal(conv.y), of.x, of.weight},
             args, shapes);
  };
}

void addConvolution(SampleTable &table) {
  std::vector<std::function<void(Builder &)>> builds;
  for (const Convolution &conv :
       {plain(), unbiased(), transposed(), depthwise(), grouped()})
    builds.push_back([=](Builder &b) { forward(b, conv); });
  table["aten::convolution"] = several(builds);
  table["aten::convolution_backward"] =
      several({backward(plain(), {true, true, true}),
               backward(unbiased(), {true, true, false}),
               backward(transposed(), {true, true, true}),
               backward(depthwise(), {true, true, true}),
               backward(grouped(), {true, true, true}),
               backward(plain(), {false, true, false})});
}

//===- Pooling ------------------------------------------------------------===//

ValueId picture(Builder &b, Shape spatial) {
  Shape shape = {3, 6}, factors = {3, 2, 3};
  shape.insert(shape.end(), spatial.begin(), spatial.end());
  factors.insert(factors.end(), spatial.begin(), spatial.end());
  ValueId x = b.normal(shape);
  b.factors(x, factors);
  return x;
}

void addPooling(SampleTable &table) {
  const std::vector<Arg> window = {Dims{2, 2}, Dims{2, 2}, Dims{0, 0},
                                   Dims{1, 1}, false};
  auto maximum = [window](Builder &b, ValueId x) {
    std::vector<Arg> args = operandArgs(1, window);
    return b.runAll("aten::max_pool2d_with_indices", {x}, args,
                    Shapes{Shape{3, 6, 2, 3}, Shape{3, 6, 2, 3}})[1];
  };
  table["aten::max_pool2d_with_indices"] = one([=](Builder &b) {
    maximum(b, picture(b, {4, 6}));
  });
  table["aten::max_pool2d_with_indices_backward"] = one([=](Builder &b) {
    ValueId x = picture(b, {4, 6});
    ValueId places = maximum(b, x);
    std::vector<Arg> args = operandArgs(2, window);
    args.push_back(OperandArg{2});
    b.run("aten::max_pool2d_with_indices_backward",
          {b.normal({3, 6, 2, 3}), x, places}, args, {3, 6, 4, 6});
  });
  const std::vector<Arg> average = {Dims{2, 3}, Dims{2, 3}, Dims{0, 0},
                                    false,      true,       std::monostate()};
  table["aten::avg_pool2d"] = one([=](Builder &b) {
    b.run("aten::avg_pool2d", {picture(b, {4, 6})}, operandArgs(1, average),
          {3, 6, 2, 2});
  });
  table["aten::avg_pool2d_backward"] = one([=](Builder &b) {
    b.run("aten::avg_pool2d_backward",
          {b.normal({3, 6, 2, 2}), picture(b, {4, 6})}, operandArgs(2, average),
          {3, 6, 4, 6});
  });
  table["aten::_adaptive_avg_pool2d"] = one([](Builder &b) {
    b.run("aten::_adaptive_avg_pool2d", {picture(b, {4, 6})},
          operandArgs(1, {Dims{3, 2}}), {3, 6, 3, 2});
  });
  table["aten::_adaptive_avg_pool2d_backward"] = one([](Builder &b) {
    b.run("aten::_adaptive_avg_pool2d_backward",
          {b.normal({3, 6, 3, 2}), picture(b, {4, 6})}, operandArgs(2),
          {3, 6, 4, 6});
  });
}

void addResampling(SampleTable &table, const std::string &name, Dims from,
                   Dims to, std::vector<Arg> rest) {
  Shape large = {3, 6};
  large.insert(large.end(), to.begin(), to.end());
  table[name] = one([=](Builder &b) {
    std::vector<Arg> args = operandArgs(1, {to});
    args.insert(args.end(), rest.begin(), rest.end());
    b.run(name, {picture(b, from)}, args, large);
  });
  table[name + "_backward"] = one([=](Builder &b) {
    Shape small = {3, 6};
    small.insert(small.end(), from.begin(), from.end());
    std::vector<Arg> args = operandArgs(1, {to, ResultSizes{0}});
    args.insert(args.end(), rest.begin(), rest.end());
    ValueId gradient = picture(b, to);
    b.run(name + "_backward", {gradient}, args, small);
  });
}

} // namespace

void addConvolutionSamples(SampleTable &table) {
  addConvolution(table);
  addPooling(table);
  addResampling(table, "aten::upsample_nearest1d", {3}, {5},
                {std::monostate()});
  addResampling(table, "aten::upsample_nearest2d", {3, 2}, {6, 4}, {2.0, 2.0});
  addResampling(table, "aten::upsample_bilinear2d", {3, 2}, {6, 5},
                {false, std::monostate(), std::monostate()});
}

} // namespace monarch::test
