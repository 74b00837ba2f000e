//===- WorkTest.cpp - what a graph asks of a device -----------------------===//
#include "planner/work/Work.h"
#include "planner/families/ModelShape.h"

#include <catch2/catch.hpp>

using namespace monarch;
using namespace monarch::planner;

namespace {

ModelShape gpt(double dropout) {
  ModelShape shape;
  shape.hidden = 64;
  shape.heads = shape.kvHeads = 4;
  shape.headDim = 16;
  shape.mlpHidden = 256;
  shape.vocabulary = 1000;
  shape.sequence = 32;
  shape.dropout = dropout;
  return shape;
}

double sumAt(const std::vector<Extent> &list, const BlockSplit &split) {
  double sum = 0;
  for (const Extent &extent : list)
    sum += extent.at(split);
  return sum;
}

} // namespace

TEST_CASE("Tensor parallelism reduces twice each way and splits heads") {
  auto work = workOf(*buildGraph(gpt(0)), {Fusion::Local, true});
  REQUIRE(work);
  const BlockWork &block = work->kinds[0];
  CHECK(block.forward.reductions.size() == 2);
  CHECK(block.backward.reductions.size() == 2);
  CHECK(block.forward.gathers.size() == 2);
  BlockSplit split;
  split.tensor = 4;
  CHECK(block.forward.products[0].n.at(split) == 3 * 64 / 4);
  CHECK(block.forward.products[1].k.at(split) == 64 / 4);
  CHECK(block.forward.attentions[0].heads.at(split) == 1);
}

TEST_CASE("Saved activations are those of the closed form") {
  // 34 bytes a token and hidden unit without scores: Korthikanti et al. 2022,
  // equation 2. The graph's attention keeps a statistic a head, and norms two a
  // token; the formula leaves them out.
  ModelShape shape = gpt(0.1);
  auto work = workOf(*buildGraph(shape), {Fusion::Local, true});
  REQUIRE(work);
  BlockSplit whole;
  const double unit = static_cast<double>(shape.sequence * shape.hidden);
  const double statistics =
      static_cast<double>(shape.sequence) * 4 * (shape.heads + 4);
  CHECK(sumAt(work->kinds[0].saved, whole) == 34 * unit + statistics);
}

TEST_CASE("Fused kernels move less and start fewer") {
  ModelShape shape = gpt(0);
  shape.family = ModelFamily::Llama;
  shape.isTied = false;
  auto eager = workOf(*buildGraph(shape), {Fusion::None, false});
  auto own = workOf(*buildGraph(shape), {Fusion::Local, true});
  auto compiled = workOf(*buildGraph(shape), {Fusion::Compiled, false});
  BlockSplit whole;
  double most = sumAt(eager->kinds[0].forward.traffic, whole);
  CHECK(sumAt(own->kinds[0].forward.traffic, whole) < most / 2);
  CHECK(sumAt(compiled->kinds[0].forward.traffic, whole) < most / 2);
  CHECK(own->kinds[0].forward.products.size() == 4);
  CHECK(eager->kinds[0].forward.products.size() == 7);
  CHECK(own->kinds[0].forward.launches < eager->kinds[0].forward.launches);
}

TEST_CASE("A norm of the target's own reads and writes the stream once") {
  ModelShape shape = gpt(0);
  shape.family = ModelFamily::Llama;
  auto work = workOf(*buildGraph(shape), {Fusion::Local, true});
  BlockSplit split;
  split.tensor = 4;
  split.isSequenceParallel = true;
  // Two norms of 2 passes and two additions of 3, split along the sequence.
  const double pass = 2.0 * shape.sequence * shape.hidden;
  double residual = 0;
  for (const Extent &extent : work->kinds[0].forward.traffic)
    if (extent.with & Extent::Sequence)
      residual += extent.at(split);
  CHECK(residual == 10 * pass / 4);
}

TEST_CASE("A graph without numbered modules is refused") {
  Graph graph;
  auto work = workOf(graph, {});
  REQUIRE_FALSE(work);
  CHECK(work.error().id == "MP3201");
}
