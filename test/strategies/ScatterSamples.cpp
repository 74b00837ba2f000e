//===- ScatterSamples.cpp - samples of writing into parts of tensors ------===//

#include "test/strategies/Samples.h"

#include <ATen/ops/tensor.h>

namespace monarch::test {

namespace {

using Builder = SampleBuilder;
using Shape = Builder::Shape;

std::function<void(Builder &)> sliceScatter(Shape shape, int64_t dim, Arg begin,
                                            Arg end, int64_t step,
                                            Shape source) {
  return [=](Builder &b) {
    b.run("aten::slice_scatter", {b.normal(shape), b.normal(source)},
          operandArgs(2, {dim, begin, end, step}), shape);
  };
}

/// x [5, 6, 4] at two indices along dim 1; one of them twice.
void putRows(Builder &b, const std::string &name, std::vector<Arg> rest) {
  std::vector<Arg> args = {OperandArg{0}, OperandListArg{{None, 1}},
                           OperandArg{2}};
  args.insert(args.end(), rest.begin(), rest.end());
  b.run(name, {b.normal({5, 6, 4}), b.integers({3, 2}, 6), b.normal({2, 4})},
        args, {5, 6, 4});
}

/// x [5, 6, 4] at pairs of positions in the first two dims.
void putPairs(Builder &b, const std::string &name, std::vector<Arg> rest) {
  std::vector<Arg> args = {OperandArg{0}, OperandListArg{{1, 2}},
                           OperandArg{3}};
  args.insert(args.end(), rest.begin(), rest.end());
  b.run(name,
        {b.normal({5, 6, 4}), b.integers({7, 1}, 5), b.integers({3}, 6),
         b.normal({7, 3, 4})},
        args, {5, 6, 4});
}

} // namespace

void addScatterSamples(SampleTable &table) {
  table["aten::slice_scatter"] =
      several({sliceScatter({5, 12}, 1, int64_t(4), int64_t(8), 1, {5, 4}),
               sliceScatter({9, 5}, 0, int64_t(3),
                            std::numeric_limits<int64_t>::max(), 1, {6, 5}),
               sliceScatter({4, 6}, -1, int64_t(1), int64_t(6), 1, {4, 5}),
               sliceScatter({4, 6}, 1, int64_t(0), int64_t(6), 2, {4, 3})});
  table["aten::select_scatter"] = one([](Builder &b) {
    b.run("aten::select_scatter", {b.normal({4, 3, 6}), b.normal({4, 6})},
          operandArgs(2, {int64_t(1), int64_t(-1)}), {4, 3, 6});
  });
  table["aten::index_put"] = several(
      {[](Builder &b) { putRows(b, "aten::index_put", {true}); },
       [](Builder &b) { putPairs(b, "aten::index_put", {true}); },
       // Each place once: which value stays is not defined otherwise.
       [](Builder &b) {
         b.run("aten::index_put",
               {b.normal({5, 6}), b.leaf(at::tensor({int64_t(4), int64_t(0)})),
                b.normal({2, 6})},
               {OperandArg{0}, OperandListArg{{1}}, OperandArg{2}, false},
               {5, 6});
       }});
  table["aten::_index_put_impl"] =
      several({[](Builder &b) {
                 putRows(b, "aten::_index_put_impl", {true, true});
               },
               [](Builder &b) {
                 putPairs(b, "aten::_index_put_impl", {true, true});
               }});
}

} // namespace monarch::test
