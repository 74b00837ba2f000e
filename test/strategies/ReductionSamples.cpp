//===- ReductionSamples.cpp - samples of reductions and losses ------------===//

#include "test/strategies/Samples.h"

namespace monarch::test {

namespace {

using Builder = SampleBuilder;
using Dims = std::vector<int64_t>;

ValueId operand(Builder &b) {
  ValueId x = b.normal({6, 5, 4});
  b.factors(x, {2, 3, 5, 4});
  return x;
}

SampleMaker overDims(const std::string &name) {
  return several(
      {[=](Builder &b) {
         b.run(name, {operand(b)}, {OperandArg{0}, Dims{-1}, true, {}},
               {6, 5, 1});
       },
       [=](Builder &b) {
         b.run(name, {operand(b)}, {OperandArg{0}, Dims{0, 1}, false, {}}, {4});
       }});
}

SampleMaker overAll(const std::string &name) {
  return one([=](Builder &b) {
    b.run(name, {operand(b)}, {OperandArg{0}, {}}, Builder::Shape{});
  });
}

/// Labels of 7 classes, some ignored; log-probabilities of [6, 7].
struct Labelled {
  ValueId logProbabilities, target;
};
Labelled labelled(Builder &b) {
  ValueId logits = b.normal({6, 7});
  b.factors(logits, {2, 3, 7});
  ValueId target = b.integers({6}, 7);
  at::Tensor labels = b.tensor(target);
  labels[1] = -100;
  labels[5] = -100;
  return {b.run("aten::_log_softmax", {logits},
                {OperandArg{0}, int64_t(1), false}, {6, 7}),
          target};
}

} // namespace

void addReductionSamples(SampleTable &table) {
  for (const char *name : {"aten::sum.dim_IntList", "aten::mean.dim"})
    table[name] = overDims(name);
  table["aten::sum"] = overAll("aten::sum");
  table["aten::mean"] = overAll("aten::mean");
  table["aten::logsumexp"] =
      several({[](Builder &b) {
                 b.run("aten::logsumexp", {operand(b)},
                       {OperandArg{0}, Dims{-1}, true}, {6, 5, 1});
               },
               [](Builder &b) {
                 b.run("aten::logsumexp", {operand(b)},
                       {OperandArg{0}, Dims{0, 2}, false}, {5});
               }});
  table["aten::amax"] = one([](Builder &b) {
    b.run("aten::amax", {operand(b)}, {OperandArg{0}, Dims{1}, false}, {6, 4});
  });
  for (const char *name : {"aten::var.correction", "aten::std.correction"})
    table[name] = one([=](Builder &b) {
      b.run(name, {operand(b)}, {OperandArg{0}, Dims{1}, int64_t(1), false},
            {6, 4});
    });
  table["aten::var_mean.correction"] = one([](Builder &b) {
    b.runAll("aten::var_mean.correction", {operand(b)},
             {OperandArg{0}, Dims{2}, int64_t(0), true},
             Builder::Shapes{Builder::Shape{6, 5, 1}, Builder::Shape{6, 5, 1}});
  });
  table["aten::linalg_vector_norm"] = one([](Builder &b) {
    b.run("aten::linalg_vector_norm", {operand(b)},
          {OperandArg{0}, int64_t(2), Dims{1}, true, {}}, {6, 1, 4});
  });
  table["aten::cumsum"] = one([](Builder &b) {
    b.run("aten::cumsum", {operand(b)}, {OperandArg{0}, int64_t(1), {}},
          {6, 5, 4});
  });

  table["aten::nll_loss_forward"] = one([](Builder &b) {
    Labelled x = labelled(b);
    b.runAll("aten::nll_loss_forward", {x.logProbabilities, x.target},
             operandArgs(2, {std::monostate(), int64_t(2), int64_t(-100)}),
             Builder::Shapes{Builder::Shape{}, Builder::Shape{}});
  });
  table["aten::nll_loss_backward"] = one([](Builder &b) {
    Labelled x = labelled(b);
    ValueId count =
        b.runAll("aten::nll_loss_forward", {x.logProbabilities, x.target},
                 operandArgs(2, {std::monostate(), int64_t(2), int64_t(-100)}),
                 Builder::Shapes{Builder::Shape{}, Builder::Shape{}})[1];
    b.run("aten::nll_loss_backward",
          {b.normal({}), x.logProbabilities, x.target, count},
          {OperandArg{0}, OperandArg{1}, OperandArg{2}, std::monostate(),
           int64_t(2), int64_t(-100), OperandArg{3}},
          {6, 7});
  });
  table["aten::mse_loss"] =
      several({[](Builder &b) {
                 b.run("aten::mse_loss", {operand(b), operand(b)},
                       operandArgs(2, {int64_t(2)}), Builder::Shape{});
               },
               [](Builder &b) {
                 b.run("aten::mse_loss", {operand(b), b.normal({4})},
                       operandArgs(2, {int64_t(0)}), {6, 5, 4});
               }});
  table["aten::mse_loss_backward"] =
      several({[](Builder &b) {
                 b.run("aten::mse_loss_backward",
                       {b.normal({}), operand(b), operand(b)},
                       operandArgs(3, {int64_t(2)}), {6, 5, 4});
               },
               [](Builder &b) {
                 b.run("aten::mse_loss_backward",
                       {b.normal({6, 5, 4}), operand(b), operand(b)},
                       operandArgs(3, {int64_t(0)}), {6, 5, 4});
               }});
}

} // namespace monarch::test
