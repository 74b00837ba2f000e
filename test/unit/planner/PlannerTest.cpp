//===- PlannerTest.cpp - pins, degrees, refusals, determinism -------------===//
#include "planner/Planner.h"
#include "core/program/Verify.h"
#include "planner/resolve/Resolve.h"
#include "test/support/GptGraph.h"

#include <catch2/catch.hpp>
#include <numeric>

using namespace monarch;
using namespace monarch::planner;

namespace {

Graph smallGpt(int64_t heads, int64_t vocabulary = 13) {
  monarch::test::GptShape shape;
  shape.heads = heads;
  shape.vocabulary = vocabulary;
  return monarch::test::gptGraph(shape);
}

PlanRequest requestFor(int64_t rows, std::string_view pins = "") {
  PlanRequest request;
  request.globalRows = rows;
  if (!pins.empty())
    REQUIRE_FALSE(addPins(pins, request.pins));
  return request;
}

bool contains(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("Pins are read, or refused by name") {
  Pins pins;
  REQUIRE_FALSE(addPins("dp=2,tp=4,micro_batch=3,schedule=gpipe,zero=0", pins));
  CHECK(pins.dp == 2);
  CHECK(pins.tp == 4);
  CHECK(pins.microBatch == 3);
  CHECK(pins.schedule == ScheduleKind::GPipe);
  CHECK_FALSE(pins.masterWeights);
  CHECK_FALSE(addPins("recompute=none,master_weights=float32", pins));
  CHECK(pins.masterWeights == true);
  for (const char *wrong : {"dp", "dp=", "dp=0", "dp=-1", "dp=x", "foo=1", "",
                            "dp=3", "tp=4,,pp=2", "master_weights=none"}) {
    INFO(wrong);
    std::optional<Error> error = addPins(wrong, pins);
    REQUIRE(error);
    CHECK(error->code == ExitCode::Usage);
  }
  for (const char *later : {"zero=3", "recompute=full", "cp=2", "ep=2",
                            "schedule=zb", "master_weights=float64"}) {
    INFO(later);
    CHECK(addPins(later, pins)->code == ExitCode::Unsupported);
  }
}

TEST_CASE("Every pinned degree gives a proved program") {
  Graph graph = smallGpt(6, 97);
  Cluster cluster = *presetCluster("cpu:4");
  for (const char *pins : {"dp=4", "tp=4", "pp=4", "dp=2,tp=2", "pp=2,dp=2",
                           "tp=2,pp=2", "tp=2,pp=2,schedule=gpipe"}) {
    INFO(pins);
    PlanRequest request = requestFor(8, pins);
    Expected<PlanResult> plan = makePlan(graph, cluster, request);
    REQUIRE(plan);
    CHECK(plan->degrees.dp * plan->degrees.tp * plan->degrees.pp == 4);
    if (request.pins.tp)
      CHECK(plan->degrees.tp == *request.pins.tp);
    if (request.pins.schedule)
      CHECK(plan->decisions.schedule == *request.pins.schedule);
    Expected<Resolved> resolved = resolve(*plan->space, plan->decisions);
    REQUIRE(resolved);
    CHECK(verify(resolved->program).empty());
    CHECK(price(resolved->program, cluster)->stepPicoseconds ==
          plan->price.stepPicoseconds);
    CHECK(plan->boundPicoseconds <= plan->price.stepPicoseconds);
    // Memory by use adds up to the peak that the program was proved with.
    int64_t most = 0;
    for (const PeakMemory &stage : plan->memory) {
      CHECK(std::accumulate(stage.byUse.begin(), stage.byUse.end(),
                            int64_t(0)) == stage.bytes);
      CHECK(stage.of(MemoryUse::Gradients) <= stage.of(MemoryUse::Parameters));
      CHECK(stage.of(MemoryUse::Saved) > 0);
      most = std::max(most, stage.bytes);
    }
    CHECK(most == plan->peakBytes);
    const StepParts parts = plan->price.parts();
    CHECK(parts.computePicoseconds + parts.collectivePicoseconds +
              parts.sendPicoseconds + parts.idlePicoseconds <=
          plan->price.stepPicoseconds);
  }
}

TEST_CASE("An axis that the heads do not divide is reported") {
  Expected<PlanResult> plan =
      makePlan(smallGpt(6), *presetCluster("cpu:4"), requestFor(4, "tp=4"));
  REQUIRE(plan);
  bool said = false;
  for (const std::string &remark : plan->remarks)
    said |= contains(remark, "run whole on tp1");
  CHECK(said);
}

TEST_CASE("A tp that no attention can split names the legal ones") {
  Expected<PlanResult> plan =
      makePlan(smallGpt(4), *presetCluster("cpu:6"), requestFor(6, "tp=3"));
  REQUIRE_FALSE(plan);
  CHECK(plan.error().code == ExitCode::Infeasible);
  CHECK(contains(plan.error().fix, "legal tp on 6 devices: 1, 2, 6"));
}

TEST_CASE("Degrees and batches that do not divide are refused with the legal") {
  Graph graph = smallGpt(4);
  Cluster cluster = *presetCluster("cpu:4");
  auto refusal = [&](int64_t rows, const char *pins) {
    Expected<PlanResult> plan =
        makePlan(graph, cluster, requestFor(rows, pins));
    REQUIRE_FALSE(plan);
    CHECK(plan.error().code == ExitCode::Infeasible);
    return plan.error().fix;
  };
  CHECK(contains(refusal(8, "micro_batch=3"), "2, 4"));
  CHECK(contains(refusal(8, "dp=3"), "1, 2, 4"));
  refusal(8, "dp=2,tp=1,pp=1");
  refusal(8, "dp=4,tp=4");
}

TEST_CASE("A fixed batch is split inside the unit where units are too few") {
  Graph graph = *withUnitRows(smallGpt(4), 8);
  graph.dynamicBatch = false;
  for (Value &value : graph.values)
    value.batch.assign(value.shape.size(), 0);
  Cluster cluster = *presetCluster("cpu:4");
  Expected<PlanResult> plan = makePlan(graph, cluster, requestFor(8, "dp=4"));
  REQUIRE(plan);
  for (const MeshAxis &axis : plan->decisions.mesh.axes)
    CHECK(axis.role == AxisRole::Tensor);
  Expected<Resolved> resolved = resolve(*plan->space, plan->decisions);
  REQUIRE(resolved);
  CHECK(verify(resolved->program).empty());
  Expected<PlanResult> other = makePlan(graph, cluster, requestFor(12));
  REQUIRE_FALSE(other);
  CHECK(contains(other.error().fix, "8 and 16"));
}

TEST_CASE("What fits nowhere says what is needed and what there is") {
  Expected<Cluster> tiny = readCluster(R"({"schema": "monarch.cluster/1",
    "devices": {"toy": {"memory": "1kB", "memory_bw": "1GB/s",
                        "peak": {"float64": "1GFLOP/s"}}},
    "nodes": [{"per_node": 2, "device": "toy"}],
    "levels": [{"name": "bus", "size": 2, "bw": "1GB/s"}]})");
  REQUIRE(tiny);
  Expected<PlanResult> plan = makePlan(smallGpt(4), *tiny, requestFor(2));
  REQUIRE_FALSE(plan);
  CHECK(plan.error().id == "MP3103");
  CHECK(plan.error().code == ExitCode::Infeasible);
  CHECK(contains(plan.error().what, "1000 B"));
  CHECK(contains(plan.error().fix, "devices of this kind"));
}

TEST_CASE("The same query gives the same bytes, and its plan can be read") {
  Graph graph = smallGpt(4);
  Cluster cluster = *presetCluster("cpu:4");
  PlanRequest request = requestFor(8, "tp=2");
  std::string first, summary;
  for (int run = 0; run < 2; ++run) {
    Expected<PlanResult> plan = makePlan(graph, cluster, request);
    REQUIRE(plan);
    PlanFile file = planFileOf(*plan, graph, cluster, request);
    std::string text = writePlan(file);
    std::string page = summarize(*plan, cluster);
    if (run == 1) {
      CHECK(text == first);
      CHECK(page == summary);
    }
    first = text;
    summary = page;
    Expected<PlanFile> read = readPlan(text);
    REQUIRE(read);
    CHECK(writePlan(*read) == text);
    CHECK_FALSE(checkInputs(*read, digest(graph), digest(cluster)));
    Expected<Decisions> back = expandDecisions(*read, *plan->space);
    REQUIRE(back);
    CHECK(*back == plan->decisions);
    CHECK(read->document["origins"]["tp"] == "user");
    CHECK(read->document["origins"]["dp"] == "planner");
    CHECK(contains(page, "world   4 = dp"));
  }
}
