//===- NormalizationSamples.cpp - samples of layer norm and softmax -------===//

#include "test/strategies/Samples.h"

namespace monarch::test {

namespace {

using Builder = SampleBuilder;
using Shape = Builder::Shape;
using Shapes = Builder::Shapes;

struct Norm {
  ValueId x;
  std::vector<ValueId> affine, results;
};

Norm layerNorm(Builder &b, Shape normalized, bool isAffine) {
  Norm norm;
  norm.x = b.normal({4, 3, 6});
  b.factors(norm.x, {2, 2, 3, 2, 3});
  std::vector<ValueId> operands = {norm.x};
  std::vector<Arg> args = {OperandArg{0}, normalized};
  for (int k = 1; k <= 2; ++k) {
    if (isAffine) {
      norm.affine.push_back(b.normal(normalized));
      operands.push_back(norm.affine.back());
      args.push_back(OperandArg{k});
    } else {
      args.emplace_back();
    }
  }
  args.push_back(1e-5);
  Shape statistics = {4, 3, 6};
  for (size_t k = 0; k < normalized.size(); ++k)
    statistics[2 - k] = 1;
  norm.results = b.runAll("aten::native_layer_norm", operands, args,
                          Shapes{Shape{4, 3, 6}, statistics, statistics});
  return norm;
}

std::function<void(Builder &)>
layerNormBackward(Shape normalized, std::vector<bool> wanted, bool isAffine) {
  return [=](Builder &b) {
    Norm norm = layerNorm(b, normalized, isAffine);
    std::vector<ValueId> operands = {b.normal({4, 3, 6}), norm.x,
                                     norm.results[1], norm.results[2]};
    std::vector<Arg> args = {OperandArg{0}, OperandArg{1}, normalized,
                             OperandArg{2}, OperandArg{3}};
    for (ValueId affine : norm.affine) {
      args.push_back(OperandArg{static_cast<int>(operands.size())});
      operands.push_back(affine);
    }
    args.resize(7);
    args.push_back(wanted);
    Shapes shapes(3);
    if (wanted[0])
      shapes[0] = Shape{4, 3, 6};
    if (wanted[1])
      shapes[1] = normalized;
    if (wanted[2])
      shapes[2] = normalized;
    b.runAll("aten::native_layer_norm_backward", operands, args, shapes);
  };
}

ValueId softmax(Builder &b, const std::string &name, int64_t dim) {
  ValueId x = b.normal({4, 6, 5});
  b.factors(x, {4, 2, 3, 5});
  return b.run(name, {x}, {OperandArg{0}, dim, false}, {4, 6, 5});
}

void addSoftmax(SampleTable &table, const std::string &name) {
  table[name] = several({[=](Builder &b) { softmax(b, name, -1); },
                         [=](Builder &b) { softmax(b, name, 1); }});
  auto backward = [=](int64_t dim) {
    return [=](Builder &b) {
      ValueId y = softmax(b, name, dim);
      b.run(name + "_backward_data", {b.normal({4, 6, 5}), y},
            operandArgs(2, {dim, DType::Float64}), {4, 6, 5});
    };
  };
  table[name + "_backward_data"] = several({backward(-1), backward(1)});
}

} // namespace

void addNormalizationSamples(SampleTable &table) {
  table["aten::native_layer_norm"] =
      several({[](Builder &b) { layerNorm(b, {6}, true); },
               [](Builder &b) {
                 layerNorm(b, {3, 6}, true);
               },
               [](Builder &b) { layerNorm(b, {6}, false); }});
  table["aten::native_layer_norm_backward"] =
      several({layerNormBackward({6}, {true, true, true}, true),
               layerNormBackward({3, 6}, {true, true, false}, true),
               layerNormBackward({6}, {true, false, false}, false),
               layerNormBackward({6}, {false, true, true}, true)});
  addSoftmax(table, "aten::_softmax");
  addSoftmax(table, "aten::_log_softmax");
}

} // namespace monarch::test
