//===- PredictionTest.cpp -------------------------------------------------===//
//
// What programs are predicted to send and hold is what they send and hold:
// random plans of a small GPT on thread ranks, against the counters of the
// communicator and of the allocator.
//
//===----------------------------------------------------------------------===//
#include "core/program/Verify.h"
#include "planner/resolve/Resolve.h"
#include "runtime/Session.h"
#include "runtime/support/MemoryTally.h"
#include "runtime/support/Tensors.h"
#include "test/support/GptGraph.h"
#include "test/support/RandomPlan.h"

#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <catch2/catch.hpp>

using namespace monarch;
using namespace monarch::runtime;

namespace {

/// A stage may hold next to nothing; numbers in calls weigh there.
constexpr int64_t SlackBytes = 128;

class DrawnWeights final : public WeightSource {
public:
  Expected<at::Tensor> read(const WeightRequest &request) override {
    return at::randn(request.shape, at::dtype(scalarTypeOf(request.type)));
  }
};

class DrawnBatches final : public BatchSource {
public:
  Expected<at::Tensor> read(const BatchRequest &request) override {
    auto options = at::dtype(scalarTypeOf(request.type));
    if (isFloating(request.type))
      return at::randn(request.shape, options);
    int64_t bound = std::max<int64_t>(1, request.input.bound);
    return at::randint(bound, request.shape, options);
  }
};

} // namespace

TEST_CASE("random plans send and hold what is predicted") {
  installMemoryTally();
  bool masterWeights = GENERATE(false, true);
  test::GptShape shape;
  if (masterWeights) {
    shape.type = DType::BFloat16;
    // Products of 16^3 and more are oneDNN's, which allocates as it likes.
    shape.sequence = 3;
  }
  Graph graph = test::gptGraph(shape);
  StrategySpace space(graph);
  int64_t steps = 2;
  for (uint64_t seed = 0; seed < 24; ++seed) {
    planner::Decisions decisions = test::randomPlan(space, seed);
    decisions.optimizer = seed % 2 ? OptimizerKind::AdamW : OptimizerKind::SGD;
    decisions.masterWeights = masterWeights;
    INFO("seed " << seed << ": " << test::describe(decisions)
                 << (masterWeights ? ", master weights" : ""));
    Expected<planner::Resolved> resolved = planner::resolve(space, decisions);
    REQUIRE(resolved);
    const Program &program = resolved->program;
    std::string errors;
    for (const Error &error : verify(program))
      errors += toString(error) + "\n";
    REQUIRE(errors == "");

    DrawnWeights weights;
    DrawnBatches batches;
    SessionOptions options;
    options.steps = steps;
    Expected<SessionResult> result =
        runThreads(program, weights, batches, options);
    if (!result)
      FAIL(toString(result.error()));
    for (int64_t rank = 0; rank < program.worldSize(); ++rank) {
      INFO("rank " << rank);
      int64_t predicted = peakBytesOf(program, rank);
      int64_t measured = 0;
      for (const StepResult &step : result->ranks[rank]) {
        CHECK(step.traffic == trafficOf(program, rank));
        measured = std::max(measured, step.peakBytes);
      }
      CHECK(measured <= predicted);
      CHECK(predicted <= measured * 11 / 10 + SlackBytes);
    }
  }
}
