//===- ViewSamples.cpp - samples of views, cuts and joins -----------------===//

#include "test/strategies/Samples.h"

namespace monarch::test {

namespace {

using Builder = SampleBuilder;
using Shape = Builder::Shape;

/// A view of a contiguous value, and of a transposed one.
SampleMaker view(const std::string &name, Shape from, Shape to, Arg argument) {
  return several({[=](Builder &b) {
    b.run(name, {b.normal(from)}, {OperandArg{0}, argument}, to);
  }});
}

SampleMaker reshaped(const std::string &name) {
  auto through = [name](Shape from, Shape to) {
    return [=](Builder &b) {
      b.run(name, {b.normal(from)}, {OperandArg{0}, ResultSizes{0}}, to);
    };
  };
  return several(
      {through({4, 3, 6}, {12, 6}), through({12, 6}, {4, 3, 6}),
       through({6, 10}, {6, 2, 5}), through({2, 3, 4}, {6, 1, 4}),
       through({5, 3}, {15}), through({4, 6}, {6, 4}), [name](Builder &b) {
         ValueId x = b.normal({4, 15});
         b.factors(x, {2, 2, 3, 5});
         b.run(name, {x}, {OperandArg{0}, ResultSizes{0}}, {4, 3, 5});
       }});
}

SampleMaker split(const std::string &name, Arg sizes, Shape pieces) {
  return several(
      {[=](Builder &b) {
         ValueId x = b.normal({6, 12});
         b.factors(x, {2, 3, 12});
         Builder::Shapes shapes;
         for (int64_t size : pieces)
           shapes.push_back(Shape{6, size});
         ValueId piece = b.runAll(
             name, {x}, {OperandArg{0}, sizes, int64_t(-1)}, shapes)[0];
         b.factors(piece, {6, 2, pieces[0] / 2});
       },
       [=](Builder &b) {
         ValueId x = b.normal({12, 3});
         Builder::Shapes shapes;
         for (int64_t size : pieces)
           shapes.push_back(Shape{size, 3});
         Arg local = sizes;
         if (std::holds_alternative<ResultsSizes>(sizes))
           local = ResultsSizes{0};
         b.runAll(name, {x}, {OperandArg{0}, local, int64_t(0)}, shapes);
       }});
}

} // namespace

void addViewSamples(SampleTable &table) {
  for (const char *name : {"aten::view", "aten::_unsafe_view", "aten::reshape"})
    table[name] = reshaped(name);
  table["aten::view_as_complex"] = one([](Builder &b) {
    ValueId x = b.normal({6, 4, 2});
    b.factors(x, {2, 3, 4, 2});
    b.run("aten::view_as_complex", {x}, operandArgs(1), {6, 4});
  });
  table["aten::view_as_real"] = one([](Builder &b) {
    b.run("aten::view_as_real", {b.complexNumbers({6, 4})}, operandArgs(1),
          {6, 4, 2});
  });
  table["aten::unsqueeze"] =
      view("aten::unsqueeze", {6, 4}, {6, 1, 4}, int64_t(1));
  table["aten::squeeze"] = one([](Builder &b) {
    b.run("aten::squeeze", {b.normal({1, 3, 1, 4})}, operandArgs(1), {3, 4});
  });
  table["aten::squeeze.dim"] =
      several({[](Builder &b) {
                 b.run("aten::squeeze.dim", {b.normal({3, 1, 4})},
                       {OperandArg{0}, int64_t(-2)}, {3, 4});
               },
               [](Builder &b) {
                 b.run("aten::squeeze.dim", {b.normal({3, 2, 4})},
                       {OperandArg{0}, int64_t(1)}, {3, 2, 4});
               }});
  table["aten::squeeze.dims"] = one([](Builder &b) {
    b.run("aten::squeeze.dims", {b.normal({1, 3, 2, 1})},
          {OperandArg{0}, std::vector<int64_t>{0, 2, 3}}, {3, 2});
  });
  table["aten::t"] =
      several({[](Builder &b) {
                 ValueId x = b.normal({6, 5});
                 b.factors(x, {2, 3, 5});
                 b.run("aten::t", {x}, operandArgs(1), {5, 6});
               },
               [](Builder &b) {
                 b.run("aten::t", {b.normal({6})}, operandArgs(1), {6});
               }});
  table["aten::transpose.int"] = one([](Builder &b) {
    ValueId x = b.normal({4, 3, 6});
    b.factors(x, {4, 3, 2, 3});
    b.run("aten::transpose.int", {x}, {OperandArg{0}, int64_t(0), int64_t(-1)},
          {6, 3, 4});
  });
  table["aten::permute"] = one([](Builder &b) {
    b.run("aten::permute", {b.normal({4, 3, 5})},
          {OperandArg{0}, std::vector<int64_t>{-1, 0, 1}}, {5, 4, 3});
  });
  table["aten::expand"] =
      several({[](Builder &b) {
                 b.run("aten::expand", {b.normal({4, 1, 3})},
                       {OperandArg{0}, ResultSizes{0}, false}, {4, 6, 3});
               },
               [](Builder &b) {
                 ValueId x =
                     b.run("aten::expand", {b.normal({4, 3})},
                           {OperandArg{0}, ResultSizes{0}, false}, {6, 4, 3});
                 b.factors(x, {2, 3, 4, 3});
               }});

  table["aten::split.Tensor"] =
      split("aten::split.Tensor", int64_t(4), {4, 4, 4});
  table["aten::split_with_sizes"] =
      split("aten::split_with_sizes", ResultsSizes{1}, {6, 4, 2});
  auto slice = [](Shape shape, int64_t dim, Arg begin, Arg end, int64_t step,
                  Shape result) {
    return [=](Builder &b) {
      b.run("aten::slice.Tensor", {b.normal(shape)},
            {OperandArg{0}, dim, begin, end, step}, result);
    };
  };
  table["aten::slice.Tensor"] =
      several({slice({5, 12}, 1, int64_t(4), int64_t(12), 1, {5, 8}),
               slice({5, 12}, 1, std::monostate(), int64_t(-6), 1, {5, 6}),
               slice({6, 5}, 0, int64_t(0), std::numeric_limits<int64_t>::max(),
                     1, {6, 5}),
               slice({9, 5}, 0, int64_t(3), int64_t(6), 1, {3, 5}),
               slice({9, 5}, 0, int64_t(1), int64_t(9), 2, {4, 5}),
               slice({4, 6}, 1, int64_t(6), std::monostate(), 1, {4, 0})});
  auto sliceBackward = [](Shape shape, int64_t dim, int64_t begin, int64_t end,
                          int64_t step, Shape result) {
    return [=](Builder &b) {
      b.run("aten::slice_backward", {b.normal(shape)},
            {OperandArg{0}, ResultSizes{0}, dim, begin, end, step}, result);
    };
  };
  table["aten::slice_backward"] =
      several({sliceBackward({5, 8}, 1, 4, 12, 1, {5, 12}),
               sliceBackward({4, 5}, 0, 2, 6, 1, {9, 5}),
               sliceBackward({4, 5}, -2, 1, 9, 2, {9, 5}),
               sliceBackward({4, 0}, 1, 6, 9, 1, {4, 6})});
  table["aten::select.int"] = one([](Builder &b) {
    b.run("aten::select.int", {b.normal({4, 3, 6})},
          {OperandArg{0}, int64_t(1), int64_t(-1)}, {4, 6});
  });
  table["aten::unbind.int"] =
      several({[](Builder &b) {
                 ValueId x = b.normal({6, 3, 4});
                 b.factors(x, {2, 3, 3, 4});
                 b.runAll("aten::unbind.int", {x}, {OperandArg{0}, int64_t(-2)},
                          {Shape{6, 4}, Shape{6, 4}, Shape{6, 4}});
               },
               [](Builder &b) {
                 b.runAll("aten::unbind.int", {b.normal({2, 5})},
                          {OperandArg{0}, int64_t(0)}, {Shape{5}, Shape{5}});
               }});
  table["aten::select_backward"] = one([](Builder &b) {
    b.run("aten::select_backward", {b.normal({4, 6})},
          {OperandArg{0}, ResultSizes{0}, int64_t(1), int64_t(-1)}, {4, 3, 6});
  });
  table["aten::cat"] =
      several({[](Builder &b) {
                 b.run("aten::cat",
                       {b.normal({5, 4}), b.normal({5, 6}), b.normal({5, 2})},
                       {OperandListArg{{0, 1, 2}}, int64_t(-1)}, {5, 12});
               },
               [](Builder &b) {
                 b.run("aten::cat", {b.normal({4, 5}), b.normal({4, 5})},
                       {OperandListArg{{0, 1}}, int64_t(0)}, {8, 5});
               },
               [](Builder &b) {
                 b.run("aten::cat", {b.normal({4, 6}), b.normal({4, 0})},
                       {OperandListArg{{0, 1}}, int64_t(1)}, {4, 6});
               }});
  table["aten::stack"] = one([](Builder &b) {
    b.run("aten::stack", {b.normal({4, 5}), b.normal({4, 5})},
          {OperandListArg{{0, 1}}, int64_t(1)}, {4, 2, 5});
  });
  table["aten::constant_pad_nd"] = several(
      {[](Builder &b) {
         b.run("aten::constant_pad_nd", {b.normal({4, 6})},
               {OperandArg{0}, std::vector<int64_t>{0, 1}, int64_t(0)}, {4, 7});
       },
       [](Builder &b) {
         b.run(
             "aten::constant_pad_nd", {b.integers({4, 6}, 9)},
             {OperandArg{0}, std::vector<int64_t>{0, 0, 2, -1}, int64_t(-100)},
             {5, 6});
       }});
}

} // namespace monarch::test
