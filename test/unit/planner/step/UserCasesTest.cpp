//===- UserCasesTest.cpp - memory as practitioners count it ---------------===//
//
// Cases of users' reports, by number: bytes a parameter, which phase and which
// stage is the fullest, what accumulation changes.
//
//===----------------------------------------------------------------------===//
#include "planner/families/ShapeWork.h"
#include "planner/step/Estimate.h"

#include <catch2/catch.hpp>

using namespace monarch;
using namespace monarch::planner;

namespace {

/// About a billion parameters in eight layers.
ModelShape billion() {
  ModelShape shape;
  shape.layers = 8;
  shape.hidden = 3200;
  shape.heads = shape.kvHeads = 32;
  shape.headDim = 100;
  shape.mlpHidden = 4 * 3200;
  shape.vocabulary = 8000;
  shape.sequence = 256;
  return shape;
}

Machine boxes(int64_t devices) {
  return usualBoxes(*findDevice("H100-SXM5-80GB"), devices);
}

Estimate priced(const char *target, const Machine &machine, StepLayout layout) {
  const Target own = *findTarget(target);
  const auto work = workOf(billion(), own.style);
  REQUIRE(work);
  auto result = estimate(*work, machine, own, layout);
  if (!result)
    FAIL(result.error().what);
  return *result;
}

StepLayout dataParallel(int64_t degree, Sharding sharding) {
  StepLayout layout;
  layout.dp = degree;
  layout.globalBatch = 8 * degree;
  layout.sharding = sharding;
  return layout;
}

} // namespace

TEST_CASE("C39: Bytes a parameter are those of the target's accounting") {
  const double count =
      workOf(billion(), findTarget("megatron")->style)->parameterCount();
  for (int64_t degree : {1, 8}) {
    const double ranks = static_cast<double>(degree);
    // 2 weight + 4 gradient + (4 + 8) over the ranks of dp.
    StepMemory megatron = priced("megatron", boxes(degree),
                                 dataParallel(degree, Sharding::Optimizer))
                              .memory;
    CHECK(megatron.parameters / count == Approx(2));
    CHECK(megatron.gradients / count == Approx(4));
    CHECK(megatron.optimizer / count == Approx(12 / ranks));
    // All of it over the ranks: 4 weight + 4 gradient + 8.
    StepMemory sharded = priced("torchtitan", boxes(degree),
                                dataParallel(degree, Sharding::Parameters))
                             .memory;
    CHECK(sharded.parameters / count == Approx(4 / ranks));
    CHECK(sharded.optimizer / count == Approx(8 / ranks));
  }
}

TEST_CASE("C43: What fits through the backward but not the update is refused") {
  Machine machine = boxes(1);
  const StepLayout layout = dataParallel(1, Sharding::None);
  const Estimate roomy = priced("megatron", machine, layout);
  REQUIRE(roomy.fits);
  // Between the peak without and with the optimizer's states.
  const double between = roomy.memory.total - roomy.memory.optimizer / 2;
  machine.device.memoryBytes -= roomy.usableBytes - between;
  CHECK_FALSE(priced("megatron", machine, layout).fits);
}

TEST_CASE("C44: A stage keeps as many micro-batches as are behind it") {
  StepLayout layout;
  layout.pp = 4;
  layout.globalBatch = 8;
  for (int64_t stage = 0; stage < 4; ++stage)
    CHECK(layersInFlight(layout, stage, 2) ==
          static_cast<double>(2 * std::min<int64_t>(8, 4 - stage)));
  layout.globalBatch = 2;
  CHECK(layersInFlight(layout, 0, 2) == 4);
}

TEST_CASE("C52: Accumulation does not change the bytes of states") {
  StepLayout once = dataParallel(2, Sharding::Optimizer), often = once;
  once.globalBatch = 2;
  often.globalBatch = 16;
  const StepMemory one = priced("megatron", boxes(2), once).memory;
  const StepMemory eight = priced("megatron", boxes(2), often).memory;
  CHECK(one.gradients == eight.gradients);
  CHECK(one.gradients > 0);
  CHECK(one.total == eight.total);
}
