//===- MixedTest.cpp - pipelines over several types of devices ------------===//
#include "planner/choose/MixedDevices.h"
#include "test/unit/planner/choose/Models.h"

#include <catch2/catch.hpp>
#include <numeric>

using namespace monarch;
using namespace monarch::planner;

TEST_CASE("Faster devices with more memory get more layers, the rest is idle") {
  Target target = *findTarget("deepspeed");
  ModelShape shape = llamaShape(2048, 16, 8192);
  shape.sequence = 2048;
  ModelWork work = llamaWork(24, shape, target);
  std::vector<Machine> parts = {boxes("A100-SXM4-80GB", 8),
                                boxes("V100-SXM2-32GB", 12)};
  LayoutRequest request;
  request.globalBatch = 64;
  auto choice = chooseMixedLayout(work, parts, target, request);
  REQUIRE(choice);
  INFO(summarize(*choice, parts));
  CHECK(choice->memory.total <= choice->usableBytes);
  CHECK(std::accumulate(choice->layout.stageLayers.begin(),
                        choice->layout.stageLayers.end(), int64_t(0)) == 24);
  CHECK(choice->gap() >= 0);
  int64_t devices = choice->idleDevices;
  for (const StageRun &run : choice->runs)
    devices +=
        run.stages * choice->layout.tp * choice->layout.cp * choice->layout.dp;
  CHECK(devices == 20);
  // One type alone is not better.
  for (size_t only = 0; only < 2; ++only) {
    auto alone = chooseMixedLayout(work, {parts[only]}, target, request);
    REQUIRE(alone);
    CHECK(choice->time.seconds <= alone->time.seconds * (1 + 1e-9));
  }
}

TEST_CASE("Layers of a stage follow speed") {
  Target target = *findTarget("deepspeed");
  ModelShape shape = llamaShape(2048, 16, 8192);
  shape.sequence = 2048;
  shape.vocabulary = 1000;
  ModelWork work = llamaWork(24, shape, target);
  std::vector<Machine> parts = {boxes("A100-SXM4-80GB", 1),
                                boxes("V100-SXM2-32GB", 1)};
  LayoutRequest request;
  request.globalBatch = 64;
  request.pins = *readLayoutPins("pp=2,micro_batch=1");
  auto choice = chooseMixedLayout(work, parts, target, request);
  REQUIRE(choice);
  const size_t fast = choice->runs[0].part == 0 ? 0 : 1;
  const auto &layers = choice->layout.stageLayers;
  REQUIRE(layers.size() == 2);
  CHECK(layers[fast] > 3 * layers[1 - fast] / 2);
}
