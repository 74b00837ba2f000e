//===- LookupSamples.cpp - samples of embedding tables and indexing -------===//

#include "test/strategies/Samples.h"

namespace monarch::test {

namespace {

using Builder = SampleBuilder;

SampleMaker embeddingBackward(int64_t padding) {
  return one([=](Builder &b) {
    ValueId gradient = b.normal({4, 3, 6});
    b.factors(gradient, {4, 3, 2, 3});
    b.run("aten::embedding_dense_backward", {gradient, b.integers({4, 3}, 7)},
          operandArgs(2, {ResultSize{0, 0}, padding, false}), {7, 6});
  });
}

SampleMaker triangle(const std::string &name) {
  return several({[=](Builder &b) {
                    b.run(name, {b.normal({3, 6, 5})},
                          {OperandArg{0}, int64_t(-1)}, {3, 6, 5});
                  },
                  [=](Builder &b) {
                    ValueId x = b.booleans({6, 6});
                    b.factors(x, {2, 3, 6});
                    b.run(name, {x}, {OperandArg{0}, int64_t(1)}, {6, 6});
                  }});
}

} // namespace

void addLookupSamples(SampleTable &table) {
  table["aten::embedding"] =
      several({[](Builder &b) {
                 ValueId weight = b.normal({7, 6});
                 b.factors(weight, {7, 2, 3});
                 b.run("aten::embedding", {weight, b.integers({4, 3}, 7)},
                       operandArgs(2, {int64_t(-1), false, false}), {4, 3, 6});
               },
               [](Builder &b) {
                 ValueId weight = b.normal({8, 3});
                 b.factors(weight, {2, 4, 3});
                 b.run("aten::embedding", {weight, b.integers({5}, 8)},
                       operandArgs(2, {int64_t(2), false, false}), {5, 3});
               }});
  SampleMaker plain = embeddingBackward(-1), padded = embeddingBackward(3);
  table["aten::embedding_dense_backward"] = [=](uint64_t seed) {
    std::vector<Sample> samples = plain(seed), more = padded(seed + 1);
    samples.insert(samples.end(), more.begin(), more.end());
    return samples;
  };
  table["aten::index.Tensor"] = several(
      {[](Builder &b) {
         b.run("aten::index.Tensor", {b.normal({5, 6}), b.integers({4}, 5)},
               {OperandArg{0}, OperandListArg{{1}}}, {4, 6});
       },
       [](Builder &b) {
         b.run("aten::index.Tensor",
               {b.normal({4, 5, 6}), b.integers({3, 2}, 5)},
               {OperandArg{0}, OperandListArg{{None, 1}}}, {4, 3, 2, 6});
       },
       [](Builder &b) {
         b.run("aten::index.Tensor",
               {b.normal({5, 6, 4}), b.integers({3, 1}, 5), b.integers({7}, 6)},
               {OperandArg{0}, OperandListArg{{1, 2}}}, {3, 7, 4});
       },
       [](Builder &b) {
         b.run("aten::index.Tensor",
               {b.normal({5, 6, 4}), b.integers({3}, 5), b.integers({3}, 4)},
               {OperandArg{0}, OperandListArg{{1, None, 2}}}, {3, 6});
       }});
  table["aten::gather"] = several(
      {[](Builder &b) {
         b.run("aten::gather", {b.normal({4, 6}), b.integers({4, 3}, 6)},
               {OperandArg{0}, int64_t(1), OperandArg{1}, false}, {4, 3});
       },
       [](Builder &b) {
         b.run("aten::gather", {b.normal({6, 5}), b.integers({3, 4}, 6)},
               {OperandArg{0}, int64_t(0), OperandArg{1}, false}, {3, 4});
       }});
  table["aten::tril"] = triangle("aten::tril");
  table["aten::triu"] = triangle("aten::triu");
}

} // namespace monarch::test
