//===- AttentionSamples.cpp - samples of attention and dropout ------------===//

#include "test/strategies/Samples.h"

#include <limits>

namespace monarch::test {

namespace {

using Builder = SampleBuilder;
using Shape = Builder::Shape;
using Shapes = Builder::Shapes;

struct Options {
  bool isCausal = false;
  std::optional<Shape> mask;
  bool isBoolMask = false;
  int64_t valueWidth = 4;
  bool needsMaskGradient = false;
};

struct Attention {
  std::vector<ValueId> operands; // q, k, v, mask?
  std::vector<ValueId> results;
};

Attention attention(Builder &b, const Options &options) {
  // b 2, h 2 x 2, q 5, s 6, d 4.
  ValueId q = b.normal({2, 4, 5, 4});
  b.factors(q, {2, 2, 2, 5, 4});
  Attention made;
  made.operands = {q, b.normal({2, 4, 6, 4}),
                   b.normal({2, 4, 6, options.valueWidth})};
  std::vector<Arg> args = operandArgs(3);
  if (options.mask) {
    ValueId mask = options.isBoolMask ? b.booleans(*options.mask)
                                      : b.normal(*options.mask);
    // A row that sees nothing.
    at::Tensor row = b.tensor(mask).select(-2, 1);
    if (options.isBoolMask)
      row.fill_(false);
    else
      row.fill_(-std::numeric_limits<double>::infinity());
    made.operands.push_back(mask);
    args.push_back(OperandArg{3});
  } else {
    args.emplace_back();
  }
  args.push_back(options.isCausal);
  args.push_back(0.5);
  made.results =
      b.runAll("monarch::attention", made.operands, args,
               Shapes{Shape{2, 4, 5, options.valueWidth}, Shape{2, 4, 5}});
  return made;
}

void attentionBackward(Builder &b, const Options &options) {
  Attention made = attention(b, options);
  std::vector<ValueId> operands = {b.normal({2, 4, 5, options.valueWidth})};
  operands.insert(operands.end(), made.operands.begin(), made.operands.end());
  operands.insert(operands.end(), made.results.begin(), made.results.end());
  std::vector<Arg> args = operandArgs(4);
  int next = 4;
  args.push_back(options.mask ? Arg(OperandArg{next++}) : Arg());
  args.push_back(OperandArg{next++});
  args.push_back(OperandArg{next++});
  args.push_back(options.isCausal);
  args.push_back(0.5);
  args.push_back(
      std::vector<bool>{true, true, true, options.needsMaskGradient});
  Shapes shapes = {Shape{2, 4, 5, 4}, Shape{2, 4, 6, 4},
                   Shape{2, 4, 6, options.valueWidth}, std::nullopt};
  if (options.needsMaskGradient)
    shapes[3] = *options.mask;
  b.runAll("monarch::attention_backward", operands, args, shapes);
}

std::vector<Options> variants() {
  Options plain, causal, additive, boolean, perHead;
  causal.isCausal = true;
  causal.valueWidth = 6;
  additive.mask = Shape{5, 6};
  boolean.mask = Shape{2, 1, 5, 6};
  boolean.isBoolMask = true;
  perHead.mask = Shape{2, 4, 5, 6};
  return {plain, causal, additive, boolean, perHead};
}

} // namespace

void addAttentionSamples(SampleTable &table) {
  std::vector<std::function<void(Builder &)>> forward, backward;
  for (const Options &options : variants()) {
    forward.push_back([=](Builder &b) { attention(b, options); });
    Options asked = options;
    asked.needsMaskGradient = options.mask && !options.isBoolMask;
    backward.push_back([=](Builder &b) { attentionBackward(b, asked); });
  }
  table["monarch::attention"] = several(forward);
  table["monarch::attention_backward"] = several(backward);

  table["monarch::dropout"] = one([](Builder &b) {
    ValueId x = b.normal({4, 3, 6});
    b.factors(x, {2, 2, 3, 2, 3});
    b.runAll("monarch::dropout", {x, b.state()},
             operandArgs(2, {int64_t(5), 0.4, OperandListArg{},
                             std::vector<int64_t>{}}),
             Shapes{Shape{4, 3, 6}, Shape{4, 3, 6}});
  });
  table["monarch::dropout_backward"] = one([](Builder &b) {
    ValueId mask = b.runAll("monarch::dropout", {b.normal({4, 6}), b.state()},
                            operandArgs(2, {int64_t(5), 0.4, OperandListArg{},
                                            std::vector<int64_t>{}}),
                            Shapes{Shape{4, 6}, Shape{4, 6}})[1];
    b.run("monarch::dropout_backward", {b.normal({4, 6}), mask},
          operandArgs(2, {0.4}), {4, 6});
  });
}

} // namespace monarch::test
