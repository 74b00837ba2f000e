//===- TableOpsTest.cpp - embedding bags and grouped products -------------===//
//
// Against PyTorch's own embedding bag under autograd, and against one product a
// group.
//
//===----------------------------------------------------------------------===//
#include "runtime/ops/Ops.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <catch2/catch.hpp>
#include <torch/csrc/autograd/autograd.h>

using namespace monarch;
using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

namespace {

template <typename Signature> auto op(const char *name) {
  registerOps();
  return c10::Dispatcher::singleton()
      .findSchemaOrThrow(name, "")
      .typed<Signature>();
}
using Bag = Tensor(const Tensor &, const Tensor &, const OptionalTensor &,
                   const OptionalTensor &, int64_t, bool, int64_t,
                   const OptionalTensor &);
using BagBackward = std::tuple<Tensor, Tensor>(
    const Tensor &, const OptionalTensor &, const Tensor &,
    const OptionalTensor &, const OptionalTensor &, int64_t, bool, int64_t,
    int64_t, const OptionalTensor &, std::array<bool, 2>);
using Grouped = Tensor(const Tensor &, const Tensor &, const Tensor &,
                       const OptionalTensor &);

double error(const Tensor &actual, const Tensor &expected) {
  REQUIRE(actual.sizes() == expected.sizes());
  return expected.numel() == 0 ? 0
                               : (actual - expected).abs().max().item<double>();
}

} // namespace

TEST_CASE("embedding bags and their gradients equal PyTorch's") {
  at::manual_seed(5);
  for (int64_t mode : {0, 1})
    for (bool isWeighted : {false, true})
      for (bool includesLast : {false, true})
        for (int64_t padding : {-1, 2}) {
          if (isWeighted && mode != 0) // PyTorch weighs sums only
            continue;
          CAPTURE(mode, isWeighted, includesLast, padding);
          Tensor weight = at::randn({7, 4}, at::kDouble);
          Tensor ids = at::randint(7, {9}, at::kLong);
          ids[1] = 2;
          Tensor offsets = includesLast ? at::tensor({0, 3, 3, 7, 9}, at::kLong)
                                        : at::tensor({0, 3, 3, 7}, at::kLong);
          OptionalTensor rows;
          if (isWeighted)
            rows = at::randn({9}, at::kDouble);
          std::vector<Tensor> leaves = {weight.clone().requires_grad_(true)};
          OptionalTensor rowLeaf;
          if (rows) {
            leaves.push_back(rows->clone().requires_grad_(true));
            rowLeaf = leaves[1];
          }
          Tensor expected = std::get<0>(at::embedding_bag(
              leaves[0], ids, offsets, false, mode, false, rowLeaf,
              includesLast,
              padding < 0 ? std::nullopt : std::optional<int64_t>(padding)));
          Tensor gradient = at::randn(expected.sizes(), at::kDouble);
          auto gradients =
              torch::autograd::grad({expected}, leaves, {gradient});

          Tensor out = op<Bag>("monarch::embedding_bag")
                           .call(weight, ids, offsets, rows, mode, includesLast,
                                 padding, {});
          CHECK(error(out, expected.detach()) < 1e-14);
          auto [dweight, drows] =
              op<BagBackward>("monarch::embedding_bag_backward")
                  .call(gradient, weight, ids, offsets, rows, mode,
                        includesLast, padding, 7, {}, {true, isWeighted});
          CHECK(error(dweight, gradients[0]) < 1e-14);
          CHECK(drows.defined() == isWeighted);
          if (isWeighted)
            CHECK(error(drows, gradients[1]) < 1e-14);
        }
}

TEST_CASE("bags in rows equal bags in a list") {
  at::manual_seed(6);
  Tensor weight = at::randn({7, 4}, at::kDouble);
  Tensor ids = at::randint(7, {3, 5}, at::kLong);
  for (int64_t mode : {0, 1}) {
    auto bag = op<Bag>("monarch::embedding_bag");
    Tensor rows = bag.call(weight, ids, {}, {}, mode, false, 4, {});
    Tensor list = bag.call(weight, ids.view(-1), at::arange(0, 15, 5), {}, mode,
                           false, 4, {});
    CHECK(error(rows, list) < 1e-14);
  }
}

TEST_CASE("the held parts of a table add up to the whole") {
  at::manual_seed(7);
  Tensor weight = at::randn({7, 4}, at::kDouble);
  Tensor ids = at::randint(7, {3, 5}, at::kLong);
  auto bag = op<Bag>("monarch::embedding_bag");
  Tensor sum = at::zeros({3, 4}, at::kDouble);
  for (auto [begin, end] :
       {std::pair(0, 3), std::pair(3, 3), std::pair(3, 7)}) {
    Tensor held = at::full({7}, -1, at::kLong);
    held.slice(0, begin, end).copy_(at::arange(end - begin));
    sum +=
        bag.call(weight.slice(0, begin, end), ids, {}, {}, 1, false, -1, held);
  }
  CHECK(error(sum, bag.call(weight, ids, {}, {}, 1, false, -1, {})) < 1e-14);
}

TEST_CASE("a grouped product leaves rows of no group at zero") {
  at::manual_seed(8);
  Tensor x = at::randn({6, 3}), weight = at::randn({3, 3, 2});
  Tensor ends = at::tensor({2, 2, 5}, at::kInt);
  Tensor y =
      op<Grouped>("monarch::grouped_mm").call(x, weight, ends, std::nullopt);
  CHECK(error(y.slice(0, 0, 2), x.slice(0, 0, 2).mm(weight[0])) < 1e-6);
  CHECK(error(y.slice(0, 2, 5), x.slice(0, 2, 5).mm(weight[2])) < 1e-6);
  CHECK(y[5].eq(0).all().item<bool>());
  CHECK_THROWS(op<Grouped>("monarch::grouped_mm")
                   .call(x, weight, at::tensor({2, 2, 7}, at::kInt), {}));
}
