//===- ServingTest.cpp - what fits and how fast tokens come ---------------===//
#include "planner/choose/Inference.h"
#include "test/unit/planner/choose/Models.h"

#include <catch2/catch.hpp>

using namespace monarch;
using namespace monarch::planner;

namespace {

constexpr double GiB = 1024.0 * 1024 * 1024;

InferenceRequest serving(int64_t concurrency, double length) {
  InferenceRequest request;
  request.concurrency = concurrency;
  request.length = length;
  return request;
}

} // namespace

TEST_CASE("Keys and values take what heads, layers and dtype say") {
  Target target = *findTarget("megatron");
  ModelWork work = llama8b(target);
  Machine machine = boxes("H100-SXM5-80GB", 8);
  auto one = estimateInference(work, machine, target, serving(1, 131072), 1, 1);
  REQUIRE(one);
  // 32 layers x 8 heads x 128 x (key and value) x 2 bytes.
  CHECK(one->keyValueBytesPerToken == 131072);
  CHECK(one->keysAndValues == Approx(16 * GiB));
  CHECK(one->fits);
  InferenceRequest narrow = serving(1, 131072);
  narrow.keyValueBytes = 1;
  auto half = estimateInference(work, machine, target, narrow, 1, 1);
  CHECK(half->keysAndValues == Approx(8 * GiB));
  CHECK(half->maxLength == Approx(2 * one->maxLength).epsilon(0.001));
  // Eight heads over 16 ranks: each keeps a whole one.
  Machine nodes = boxes("H100-SXM5-80GB", 16);
  auto wide = estimateInference(work, nodes, target, serving(1, 1024), 16, 1);
  REQUIRE(wide);
  CHECK(wide->keyValueBytesPerToken == 131072.0 / 8);
}

TEST_CASE("What is needed is less than what a server reserves") {
  Target target = *findTarget("megatron");
  ModelWork work = llama8b(target);
  Machine machine = boxes("A100-SXM4-80GB", 1);
  auto one = estimateInference(work, machine, target, serving(1, 4096), 1, 1);
  REQUIRE(one);
  CHECK(one->weights == Approx(16.06e9).epsilon(0.01));
  CHECK(one->needed() < 0.4 * one->usableBytes);
}

TEST_CASE("Weights of 70B over four cards of 48 GB") {
  Target target = *findTarget("megatron");
  ModelWork work = llama70b(target);
  auto four =
      estimateInference(work, boxes("L40S", 4), target, serving(1, 4096), 4, 1);
  REQUIRE(four);
  CHECK(four->weights == Approx(35.3e9).epsilon(0.01));
  CHECK(four->fits);
  auto two =
      estimateInference(work, boxes("L40S", 2), target, serving(1, 4096), 2, 1);
  REQUIRE(two);
  CHECK_FALSE(two->fits);
}

TEST_CASE("Tensor parallelism in a node is faster than across nodes") {
  Target target = *findTarget("megatron");
  ModelWork work = llama70b(target);
  Machine machine = boxes("H100-SXM5-80GB", 16);
  auto inside =
      estimateInference(work, machine, target, serving(1, 4096), 8, 2);
  auto across =
      estimateInference(work, machine, target, serving(1, 4096), 16, 1);
  auto alone = estimateInference(work, machine, target, serving(1, 4096), 2, 1);
  REQUIRE(inside);
  REQUIRE(across);
  REQUIRE(alone);
  CHECK(inside->prefillSeconds < alone->prefillSeconds);
  CHECK(across->prefillSeconds > 0);
  auto chosen = chooseInference(work, machine, target, serving(1, 4096));
  REQUIRE(chosen);
  CHECK(chosen->fits);
  CHECK(chosen->tokenSeconds <= inside->tokenSeconds * 1.0501);
  CHECK(chosen->tp <= 8);
}

TEST_CASE("Heads that three nodes cannot share leave pipelines over nodes") {
  Target target = *findTarget("megatron");
  ModelWork work = llama70b(target);
  Machine machine = boxes("H100-SXM5-80GB", 24);
  CHECK_FALSE(
      estimateInference(work, machine, target, serving(1, 4096), 24, 1));
  auto pipeline =
      estimateInference(work, machine, target, serving(1, 4096), 8, 3);
  REQUIRE(pipeline);
  CHECK(pipeline->fits);
  auto none = chooseInference(work, boxes("L40S", 1), target, serving(1, 4096));
  REQUIRE_FALSE(none);
  CHECK(none.error().id == "MP3310");
}
