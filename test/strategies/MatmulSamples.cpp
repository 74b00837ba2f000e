//===- MatmulSamples.cpp - samples of matrix products ---------------------===//

#include "test/strategies/Samples.h"

namespace monarch::test {

namespace {

using Builder = SampleBuilder;

/// [2*3, 2*4] x [2*4, sections of 5, 5, 2].
std::vector<ValueId> factorsOf(Builder &b) {
  ValueId x = b.normal({6, 8}), w = b.normal({8, 12});
  b.factors(x, {2, 3, 2, 4});
  b.sections(w, 1, {5, 5, 2});
  return {x, w};
}

void biased(Builder &b, std::vector<int64_t> biasShape, Arg beta, Arg alpha) {
  std::vector<ValueId> operands = factorsOf(b);
  operands.insert(operands.begin(), b.normal(std::move(biasShape)));
  b.run("aten::addmm", operands, operandArgs(3, {beta, alpha}), {6, 12});
}

} // namespace

void addMatmulSamples(SampleTable &table) {
  table["aten::mm"] = several(
      {[](Builder &b) {
         b.run("aten::mm", factorsOf(b), operandArgs(2), {6, 12});
       },
       [](Builder &b) {
         ValueId w = b.normal({5, 7});
         ValueId t = b.run("aten::t", {w}, operandArgs(1), {7, 5});
         b.run("aten::mm", {b.normal({1, 7}), t}, operandArgs(2), {1, 5});
       }});
  table["aten::addmm"] =
      several({[](Builder &b) { biased(b, {12}, int64_t(1), int64_t(1)); },
               [](Builder &b) {
                 biased(b, {6, 1}, 0.5, 2.0);
               },
               [](Builder &b) {
                 biased(b, {6, 12}, int64_t(1), int64_t(1));
               }});
  table["aten::bmm"] = one([](Builder &b) {
    ValueId x = b.normal({6, 5, 4});
    b.factors(x, {2, 3, 5, 4});
    b.run("aten::bmm", {x, b.normal({6, 4, 3})}, operandArgs(2), {6, 5, 3});
  });
  table["aten::baddbmm"] = one([](Builder &b) {
    b.run("aten::baddbmm",
          {b.normal({1, 5, 1}), b.normal({6, 5, 4}), b.normal({6, 4, 3})},
          operandArgs(3, {1.5, 2.0}), {6, 5, 3});
  });
}

} // namespace monarch::test
