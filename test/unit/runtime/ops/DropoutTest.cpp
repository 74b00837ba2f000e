//===- DropoutTest.cpp ----------------------------------------------------===//
//
// Bits by counter: the published vector, and masks that no split changes.
//
//===----------------------------------------------------------------------===//
#include "runtime/ops/Ops.h"
#include "runtime/ops/Philox.h"

#include <ATen/ATen.h>
#include <ATen/core/PhiloxRNGEngine.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <catch2/catch.hpp>

#include <random>

using namespace monarch;

namespace {

std::tuple<at::Tensor, at::Tensor>
dropout(const at::Tensor &x, std::vector<int64_t> rng, int64_t stream, double p,
        std::vector<at::Tensor> rows = {}, std::vector<int64_t> sizes = {}) {
  registerOps();
  using Signature = std::tuple<at::Tensor, at::Tensor>(
      const at::Tensor &, const at::Tensor &, int64_t, double, at::TensorList,
      at::IntArrayRef);
  return c10::Dispatcher::singleton()
      .findSchemaOrThrow("monarch::dropout", "")
      .typed<Signature>()
      .call(x, at::tensor(rng, at::kLong), stream, p, rows, sizes);
}

} // namespace

TEST_CASE("philox gives the words of its authors and of PyTorch") {
  CHECK(PhiloxStream{}(0) == std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d,
                                                     0xbc57ac4c, 0x9b00dbd8});
  std::mt19937_64 random(1);
  for (int trial = 0; trial < 1000; ++trial) {
    PhiloxStream stream{random(), static_cast<uint32_t>(random()),
                        static_cast<uint32_t>(random())};
    uint64_t block = random();
    at::Philox4_32 other(stream.seed,
                         stream.stream | uint64_t{stream.step} << 32, block);
    for (uint32_t word : stream(block))
      REQUIRE(word == other());
  }
}

TEST_CASE("a part of a mask is that part of the whole mask") {
  std::mt19937_64 random(2);
  auto below = [&](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
  };
  for (int trial = 0; trial < 300; ++trial) {
    const int64_t rank = 1 + below(4);
    std::vector<int64_t> sizes, localSizes;
    std::vector<at::Tensor> rows;
    for (int64_t dim = 0; dim < rank; ++dim)
      sizes.push_back(1 + below(rank > 2 ? 8 : 40));
    const double p = 0.05 + 0.9 * static_cast<double>(below(1000)) / 1000;
    const std::vector<int64_t> rng = {below(1 << 30), below(100), below(9)};
    at::Tensor x = at::ones(sizes, at::kDouble);
    auto [whole, wholeMask] = dropout(x, rng, trial, p);
    at::Tensor expected = whole;
    for (int64_t dim = 0; dim < rank; ++dim) {
      at::Tensor list = at::randperm(sizes[dim], at::kLong)
                            .slice(0, 0, below(sizes[dim] + 1))
                            .contiguous();
      expected = expected.index_select(dim, list);
      localSizes.push_back(list.numel());
      rows.push_back(list);
    }
    auto [part, partMask] =
        dropout(at::ones(localSizes, at::kDouble), rng, trial, p, rows, sizes);
    CAPTURE(trial, sizes, localSizes);
    REQUIRE(part.equal(expected));
  }
}

TEST_CASE("a unit's mask continues that of the unit before it") {
  at::Tensor x = at::ones({6, 5}, at::kDouble);
  auto whole = std::get<0>(dropout(x, {3, 4, 0}, 1, 0.4));
  for (int64_t unit = 0; unit < 3; ++unit)
    CHECK(std::get<0>(dropout(x.slice(0, 0, 2), {3, 4, unit}, 1, 0.4))
              .equal(whole.slice(0, 2 * unit, 2 * unit + 2)));
}

TEST_CASE("seed, step, unit and stream each change the mask") {
  at::Tensor x = at::ones({64, 64}, at::kDouble);
  auto mask = [&](std::vector<int64_t> rng, int64_t stream) {
    return std::get<1>(dropout(x, std::move(rng), stream, 0.5));
  };
  const at::Tensor base = mask({1, 2, 3}, 4);
  CHECK(base.equal(mask({1, 2, 3}, 4)));
  for (const at::Tensor &other : {mask({2, 2, 3}, 4), mask({1, 3, 3}, 4),
                                  mask({1, 2, 4}, 4), mask({1, 2, 3}, 5)}) {
    double agreement = base.eq(other).to(at::kDouble).mean().item<double>();
    CHECK(agreement == Approx(0.5).margin(0.05));
  }
}

TEST_CASE("kept elements are scaled and their share is 1 - p") {
  at::Tensor x = at::full({256, 256}, 3.0, at::kDouble);
  for (double p : {0.0, 0.1, 0.5, 0.9, 1.0}) {
    CAPTURE(p);
    auto [y, mask] = dropout(x, {5, 0, 0}, 0, p);
    CHECK(mask.to(at::kDouble).mean().item<double>() ==
          Approx(1 - p).margin(0.01));
    at::Tensor expected =
        p < 1 ? x * mask.to(at::kDouble) / (1 - p) : at::zeros_like(x);
    CHECK((y - expected).abs().max().item<double>() < 1e-12);
  }
}
