//===- ChannelNormSamples.cpp - samples of batch and group norm -----------===//

#include "test/strategies/Samples.h"

namespace monarch::test {

namespace {

using Builder = SampleBuilder;
using Shape = Builder::Shape;
using Shapes = Builder::Shapes;

/// Adds an operand, or its absence.
void add(std::vector<ValueId> &operands, std::vector<Arg> &args,
         std::optional<ValueId> operand) {
  if (!operand)
    return args.push_back({});
  args.push_back(OperandArg{static_cast<int>(operands.size())});
  operands.push_back(*operand);
}

std::optional<ValueId> givenIf(bool isGiven, Builder &b, Shape shape) {
  return isGiven ? std::optional(b.normal(std::move(shape))) : std::nullopt;
}

struct Norm {
  ValueId x;
  std::optional<ValueId> weight;
  std::vector<ValueId> results;
};

Norm batchNorm(Builder &b, Shape shape, bool isAffine, bool isRunning) {
  const Shape channels = {shape[1]};
  Norm norm;
  norm.x = b.normal(shape);
  if (shape.size() == 4)
    b.factors(norm.x, {2, 2, 2, 3, 3, 2});
  norm.weight = givenIf(isAffine, b, channels);
  std::vector<ValueId> operands;
  std::vector<Arg> args;
  add(operands, args, norm.x);
  add(operands, args, norm.weight);
  add(operands, args, givenIf(isAffine, b, channels));
  add(operands, args, givenIf(isRunning, b, channels));
  add(operands, args,
      isRunning ? std::optional(b.positive(channels)) : std::nullopt);
  args.push_back(0.2);
  args.push_back(1e-5);
  Shapes shapes = {shape, channels, channels};
  shapes.resize(5);
  if (isRunning)
    shapes[3] = shapes[4] = channels;
  norm.results = b.runAll("monarch::batch_norm", operands, args, shapes);
  return norm;
}

std::function<void(Builder &)> batchNormBackward(Shape shape, bool isAffine,
                                                 std::vector<bool> wanted) {
  return [=](Builder &b) {
    Norm norm = batchNorm(b, shape, isAffine, true);
    std::vector<ValueId> operands;
    std::vector<Arg> args;
    add(operands, args, b.normal(shape));
    add(operands, args, norm.x);
    add(operands, args, norm.weight);
    add(operands, args, norm.results[1]);
    add(operands, args, norm.results[2]);
    args.push_back(1e-5);
    args.push_back(wanted);
    Shapes shapes(3);
    if (wanted[0])
      shapes[0] = shape;
    for (int k : {1, 2})
      if (wanted[k])
        shapes[k] = Shape{shape[1]};
    b.runAll("monarch::batch_norm_backward", operands, args, shapes);
  };
}

Norm groupNorm(Builder &b, Shape shape, bool isAffine) {
  const Shape affine = {shape[1], shape[2]}, statistics = {shape[0], shape[1]};
  Norm norm;
  norm.x = b.normal(shape);
  norm.weight = givenIf(isAffine, b, affine);
  std::vector<ValueId> operands;
  std::vector<Arg> args;
  add(operands, args, norm.x);
  add(operands, args, norm.weight);
  add(operands, args, givenIf(isAffine, b, affine));
  args.push_back(1e-5);
  norm.results = b.runAll("monarch::group_norm", operands, args,
                          Shapes{shape, statistics, statistics});
  return norm;
}

std::function<void(Builder &)> groupNormBackward(Shape shape, bool isAffine,
                                                 std::vector<bool> wanted) {
  return [=](Builder &b) {
    Norm norm = groupNorm(b, shape, isAffine);
    std::vector<ValueId> operands;
    std::vector<Arg> args;
    add(operands, args, b.normal(shape));
    add(operands, args, norm.x);
    add(operands, args, norm.results[1]);
    add(operands, args, norm.results[2]);
    add(operands, args, norm.weight);
    args.push_back(wanted);
    Shapes shapes(3);
    if (wanted[0])
      shapes[0] = shape;
    for (int k : {1, 2})
      if (wanted[k])
        shapes[k] = Shape{shape[1], shape[2]};
    b.runAll("monarch::group_norm_backward", operands, args, shapes);
  };
}

} // namespace

void addChannelNormSamples(SampleTable &table) {
  table["monarch::batch_norm"] =
      several({[](Builder &b) {
                 batchNorm(b, {4, 6, 3, 2}, true, true);
               },
               [](Builder &b) {
                 batchNorm(b, {5, 4}, false, false);
               }});
  table["monarch::batch_norm_backward"] =
      several({batchNormBackward({4, 6, 3, 2}, true, {true, true, true}),
               batchNormBackward({5, 4}, false, {true, false, false}),
               batchNormBackward({5, 4, 3}, true, {false, true, true})});
  table["monarch::group_norm"] = several({[](Builder &b) {
                                            groupNorm(b, {3, 4, 2, 3, 2}, true);
                                          },
                                          [](Builder &b) {
                                            groupNorm(b, {2, 3, 4}, false);
                                          }});
  table["monarch::group_norm_backward"] =
      several({groupNormBackward({3, 4, 2, 3, 2}, true, {true, true, true}),
               groupNormBackward({2, 3, 4}, false, {true, false, false}),
               groupNormBackward({2, 3, 4, 5}, true, {false, true, true})});
}

} // namespace monarch::test
