//===- ChooseLayoutTest.cpp - choices, pins, refusals, determinism --------===//
#include "planner/choose/ChooseLayout.h"
#include "test/unit/planner/choose/Models.h"

#include <catch2/catch.hpp>

using namespace monarch;
using namespace monarch::planner;

namespace {

ModelWork llama(int64_t layers, int64_t hidden, int64_t heads,
                const Target &target) {
  return llamaWork(layers, llamaShape(hidden, heads, hidden * 7 / 2), target);
}

} // namespace

TEST_CASE("The choice fits, is no worse than its alternatives, and says why") {
  Target target = *findTarget("megatron");
  ModelWork work = llama(80, 8192, 64, target);
  Machine machine = boxes("H100-SXM5-80GB", 64);
  LayoutRequest request;
  request.globalBatch = 128;
  auto choice = chooseLayout(work, machine, target, request);
  REQUIRE(choice);
  INFO(summarize(*choice, machine, target));
  CHECK(choice->best.fits);
  CHECK(choice->gap() >= 0);
  CHECK(choice->gap() < 0.05);
  REQUIRE(choice->alternatives.size() == 3);
  for (const LayoutFamily &family : choice->alternatives) {
    CHECK(family.best.fits);
    CHECK(family.best.time.seconds >= choice->best.time.seconds);
    CHECK_FALSE(family.reason.empty());
  }
  auto again = chooseLayout(work, machine, target, request);
  CHECK(writeJson(toJson(*choice, machine, target)) ==
        writeJson(toJson(*again, machine, target)));
}

TEST_CASE("Pins are honoured, and each decision says who made it") {
  Target target = *findTarget("megatron");
  ModelWork work = llama(4, 1024, 8, target);
  Machine machine = boxes("A100-SXM4-80GB", 8);
  LayoutRequest request;
  request.globalBatch = 32;
  request.pins = *readLayoutPins("pp=2,layers=3:1,tp=2");
  auto choice = chooseLayout(work, machine, target, request);
  REQUIRE(choice);
  CHECK(choice->best.layout.pp == 2);
  CHECK(choice->best.layout.tp == 2);
  CHECK(choice->best.layout.stageLayers == std::vector<int64_t>{3, 1});
  int users = 0;
  for (const LayoutDecision &decision : choice->decisions)
    users += decision.by == DecidedBy::User;
  CHECK(users == 3);
}

TEST_CASE(
    "Products that are not the world size are refused with the equation") {
  Target target = *findTarget("megatron");
  ModelWork work = llama(4, 1024, 8, target);
  Machine machine = boxes("A100-SXM4-80GB", 12);
  LayoutRequest request;
  request.globalBatch = 12;
  request.pins = *readLayoutPins("tp=8,micro_batch=1");
  auto choice = chooseLayout(work, machine, target, request);
  REQUIRE_FALSE(choice);
  CHECK(choice.error().id == "MP3311");
  CHECK(choice.error().code == ExitCode::Infeasible);
  CHECK(choice.error().what ==
        "tp=8 cannot be honoured: tp 8 x pp 1 x dp 1 x cp 1 = 8 devices of 12");
  CHECK(choice.error().fix == "tp could be 1, 2, 4");
}

TEST_CASE("Pins that memory rules out: the smallest set, and what frees it") {
  Target target = *findTarget("megatron");
  ModelWork work = llama(32, 4096, 32, target);
  Machine machine = boxes("A100-SXM4-40GB", 8);
  LayoutRequest request;
  request.globalBatch = 64;
  request.pins = *readLayoutPins("dp=8,zero=0,micro_batch=1");
  auto choice = chooseLayout(work, machine, target, request);
  REQUIRE_FALSE(choice);
  INFO(toString(choice.error()));
  CHECK(choice.error().id == "MP3311");
  CHECK(choice.error().what.find("micro_batch") == std::string::npos);
  CHECK(choice.error().what.find("GiB too many") != std::string::npos);
  CHECK(choice.error().fix.find("dp could be") != std::string::npos);
}

TEST_CASE("Nothing fits: need, have, the smallest cluster, the lever") {
  Target target = *findTarget("megatron");
  ModelWork work = llama(80, 8192, 64, target);
  Machine machine = boxes("A100-SXM4-40GB", 8);
  LayoutRequest request;
  request.globalBatch = 64;
  auto choice = chooseLayout(work, machine, target, request);
  REQUIRE_FALSE(choice);
  INFO(toString(choice.error()));
  CHECK(choice.error().id == "MP3310");
  CHECK(choice.error().fix.find("of these devices are enough") !=
        std::string::npos);
  CHECK(choice.error().fix.find("frees") != std::string::npos);
}

TEST_CASE("Names that are no pins are refused with the known ones") {
  auto pins = readLayoutPins("tp=2,xp=4");
  REQUIRE_FALSE(pins);
  CHECK(pins.error().id == "MP3304");
  CHECK_FALSE(readLayoutPins("tp=0"));
  CHECK_FALSE(readLayoutPins("zero=4"));
  CHECK(readLayoutPins("recompute=full,schedule=zb1,sp=on,layers=2:1:1"));
}
