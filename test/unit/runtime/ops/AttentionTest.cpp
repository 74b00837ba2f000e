//===- AttentionTest.cpp --------------------------------------------------===//
//
// Forward and backward against PyTorch's spelled attention under autograd.
//
//===----------------------------------------------------------------------===//
#include "runtime/ops/Ops.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <catch2/catch.hpp>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <random>

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
using Forward = std::tuple<Tensor, Tensor>(const Tensor &, const Tensor &,
                                           const Tensor &,
                                           const OptionalTensor &, bool,
                                           double);
using Backward = std::tuple<Tensor, Tensor, Tensor, Tensor>(
    const Tensor &, const Tensor &, const Tensor &, const Tensor &,
    const OptionalTensor &, const Tensor &, const Tensor &, bool, double,
    std::array<bool, 4>);

/// What attention is, in float64 and in ops that autograd knows.
Tensor expectedOut(const Tensor &q, const Tensor &k, const Tensor &v,
                   const OptionalTensor &mask, bool isCausal, double scale) {
  Tensor s = at::matmul(q, k.transpose(-2, -1)) * scale;
  if (mask && mask->scalar_type() == at::kBool)
    s = s.masked_fill(mask->logical_not(), -INFINITY);
  else if (mask)
    s = s + mask->to(at::kDouble);
  if (isCausal)
    s = s.masked_fill(at::ones({s.size(-2), s.size(-1)}, at::kBool).triu(1),
                      -INFINITY);
  return at::matmul(at::_safe_softmax(s, -1), v);
}

double error(const Tensor &actual, const Tensor &expected) {
  if (expected.numel() == 0)
    return actual.sizes() == expected.sizes() ? 0 : 1;
  // Relative to 0.3 at least: some gradients are exactly zero.
  double size = expected.abs().max().item<double>();
  return (actual.to(at::kDouble) - expected).abs().max().item<double>() /
         std::max(size, 0.3);
}

} // namespace

TEST_CASE("attention and its gradients equal spelled attention") {
  std::mt19937_64 random(11);
  auto below = [&](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
  };
  at::manual_seed(11);
  for (int trial = 0; trial < 200; ++trial) {
    const auto type = trial % 2 == 0 ? at::kDouble : at::kFloat;
    const int64_t b = 1 + below(3), h = 1 + below(4), rows = 1 + below(20),
                  columns = 1 + below(20), d = 1 + below(12);
    const int64_t e = below(3) == 0 ? 1 + below(12) : d;
    auto make = [&](int64_t n, int64_t width) {
      // Heads inside rows, as models make them, or outside.
      Tensor x = below(2) == 0
                     ? at::randn({b, n, h, width}, type).transpose(1, 2)
                     : at::randn({b, h, n, width}, type);
      return x;
    };
    Tensor q = make(rows, d), k = make(columns, d), v = make(columns, e);
    OptionalTensor mask;
    bool needMask = false;
    switch (below(4)) {
    case 0:
      mask = at::randn({b, 1, rows, columns}) > -0.5;
      break;
    case 1:
      mask = at::randn({1, h, rows, columns}, type);
      needMask = below(2) == 0;
      break;
    case 2:
      mask = at::randn({rows, columns}, at::kFloat);
      break;
    default:
      break;
    }
    const bool isCausal = !mask && below(2) == 0;
    const double scale = 0.1 + 0.1 * static_cast<double>(below(9));
    CAPTURE(trial, b, h, rows, columns, d, e, isCausal, needMask);

    std::vector<Tensor> leaves = {q, k, v};
    if (needMask)
      leaves.push_back(*mask);
    for (Tensor &leaf : leaves)
      leaf = leaf.to(at::kDouble).clone().requires_grad_(true);
    OptionalTensor wideMask = needMask ? OptionalTensor(leaves[3]) : mask;
    Tensor expected =
        expectedOut(leaves[0], leaves[1], leaves[2], wideMask, isCausal, scale);
    Tensor gradient = at::randn(expected.sizes(), type);
    auto gradients =
        torch::autograd::grad({expected}, leaves, {gradient.to(at::kDouble)});

    auto [out, logsumexp] =
        op<Forward>("monarch::attention").call(q, k, v, mask, isCausal, scale);
    auto [dq, dk, dv, dmask] =
        op<Backward>("monarch::attention_backward")
            .call(gradient, q, k, v, mask, out, logsumexp, isCausal, scale,
                  {true, true, true, needMask});
    const double tolerance = type == at::kDouble ? 1e-12 : 1e-5;
    CHECK(error(out, expected.detach()) < tolerance);
    CHECK(logsumexp.scalar_type() == type);
    CHECK(logsumexp.sizes() == at::IntArrayRef({b, h, rows}));
    CHECK(error(dq, gradients[0]) < tolerance);
    CHECK(error(dk, gradients[1]) < tolerance);
    CHECK(error(dv, gradients[2]) < tolerance);
    CHECK(dmask.defined() == needMask);
    if (needMask)
      CHECK(error(dmask, gradients[3]) < tolerance);
  }
}

TEST_CASE("merging the heads of attention's results is a view") {
  for (int64_t e : {8, 5}) { // the fused kernel, and spelled out
    CAPTURE(e);
    Tensor q = at::randn({2, 3, 4, 8}), k = at::randn({2, 3, 6, 8}),
           v = at::randn({2, 3, 6, e});
    auto [out, logsumexp] =
        op<Forward>("monarch::attention").call(q, k, v, {}, false, 0.5);
    CHECK(out.transpose(1, 2).is_contiguous());
    auto [dq, dk, dv, dmask] =
        op<Backward>("monarch::attention_backward")
            .call(at::ones_like(out), q, k, v, {}, out, logsumexp, false, 0.5,
                  {true, true, false, false});
    CHECK(dq.transpose(1, 2).is_contiguous());
    CHECK(dk.transpose(1, 2).is_contiguous());
    CHECK_FALSE(dv.defined());
  }
}

TEST_CASE("operands of different heads are refused") {
  Tensor q = at::randn({1, 4, 2, 8}), k = at::randn({1, 2, 2, 8});
  CHECK_THROWS_AS(
      op<Forward>("monarch::attention").call(q, k, k, {}, false, 0.5),
      c10::Error);
}
