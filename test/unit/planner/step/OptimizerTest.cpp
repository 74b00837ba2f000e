//===- OptimizerTest.cpp - states by optimizer, frozen weights ------------===//
#include "planner/step/Optimizer.h"
#include "planner/families/ModelShape.h"
#include "planner/step/Estimate.h"

#include <catch2/catch.hpp>

using namespace monarch;
using namespace monarch::planner;

namespace {

struct Run {
  Machine machine;
  Target target = *findTarget("megatron");
  ModelWork work;
  StepLayout layout;
  Run() {
    machine = usualBoxes(*findDevice("H100-SXM5-80GB"), 8);
    ModelShape shape;
    shape.hidden = 2048;
    shape.heads = shape.kvHeads = 16;
    shape.headDim = 128;
    shape.mlpHidden = 8192;
    shape.vocabulary = 32000;
    shape.sequence = 1024;
    work = *workOf(*buildGraph(shape), target.style, {24});
    layout.dp = 8;
    layout.globalBatch = 64;
  }
};

} // namespace

TEST_CASE("Bytes a parameter: weight, gradient and what the optimizer keeps") {
  Run run;
  const double count = run.work.parameterCount();
  auto states = [&](Optimizer optimizer) {
    const Target target = withOptimizer(run.target, optimizer);
    auto e = *estimate(run.work, run.machine, target, run.layout);
    return (e.memory.parameters + e.memory.gradients + e.memory.optimizer) /
           count;
  };
  // 16 bits, 32 bits, and a 32-bit copy beside the moments.
  CHECK(states(Optimizer::AdamW) == Approx(2 + 4 + 4 + 8));
  CHECK(states(Optimizer::SgdMomentum) == Approx(2 + 4 + 4 + 4));
  CHECK(states(Optimizer::Sgd) == Approx(2 + 4 + 4));
  CHECK(states(Optimizer::Adam8bit) ==
        Approx(2 + 4 + 4 + 2 * (1 + 4.0 / 2048)));
}

TEST_CASE("Fewer bytes update faster, nothing else of the step changes") {
  Run run;
  auto time = [&](Optimizer optimizer) {
    return estimate(run.work, run.machine, withOptimizer(run.target, optimizer),
                    run.layout)
        ->time;
  };
  const StepTime adam = time(Optimizer::AdamW), sgd = time(Optimizer::Sgd);
  CHECK(sgd.optimizer < adam.optimizer);
  CHECK(sgd.stage == adam.stage);
  CHECK(sgd.data == adam.data);
}

TEST_CASE("Frozen weights: no gradients, no states, a third less work") {
  Run run;
  // Rows enough for products to outlast the host's launches.
  run.layout.microBatch = 8;
  auto whole = *estimate(run.work, run.machine, run.target, run.layout);
  FrozenRun frozen = withFrozenWeights(run.work, run.target);
  auto less = *estimate(frozen.work, run.machine, frozen.target, run.layout);
  CHECK(less.memory.gradients == 0);
  CHECK(less.memory.optimizer == 0);
  CHECK(less.memory.parameters == whole.memory.parameters);
  const double ratio = less.time.seconds / whole.time.seconds;
  CHECK(ratio > 0.55);
  CHECK(ratio < 0.85);
}
