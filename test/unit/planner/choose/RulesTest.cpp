//===- RulesTest.cpp - what experts would say of a choice -----------------===//
#include "planner/choose/ChooseLayout.h"
#include "planner/choose/Compare.h"
#include "test/unit/planner/choose/Models.h"

#include <catch2/catch.hpp>

using namespace monarch;
using namespace monarch::planner;

namespace {

LayoutChoice choose(const ModelWork &work, const Machine &machine,
                    const Target &target, int64_t globalBatch) {
  LayoutRequest request;
  request.globalBatch = globalBatch;
  auto choice = chooseLayout(work, machine, target, request);
  REQUIRE(choice);
  return *choice;
}

} // namespace

TEST_CASE("What fits one device is replicated or sharded, not cut") {
  for (const char *name : {"megatron", "torchtitan"}) {
    Target target = *findTarget(name);
    ModelShape shape = llamaShape(2048, 16, 5632);
    shape.vocabulary = 32000;
    shape.sequence = 2048;
    LayoutChoice choice = choose(llamaWork(16, shape, target),
                                 boxes("A100-SXM4-80GB", 8), target, 256);
    INFO(name << ": " << shortName(choice.best.layout));
    CHECK(choice.best.layout.tp == 1);
    CHECK(choice.best.layout.pp == 1);
  }
}

TEST_CASE("8B on eight devices with FSDP needs no tensor parallelism") {
  Target target = *findTarget("torchtitan");
  LayoutChoice choice =
      choose(llama8b(target), boxes("H100-SXM5-80GB", 8), target, 128);
  INFO(shortName(choice.best.layout));
  CHECK(choice.best.layout.tp == 1);
}

TEST_CASE("Tensor parallelism stays inside nodes, pipelines cross slow links") {
  Target target = *findTarget("megatron");
  for (double bytesPerSecond : {1.25e9, 400e9}) {
    Machine machine = boxes("H100-SXM5-80GB", 64);
    machine.nodeNicBytesPerSecond = bytesPerSecond;
    LayoutChoice choice = choose(llama70b(target), machine, target, 128);
    INFO(bytesPerSecond << " B/s: " << shortName(choice.best.layout));
    CHECK(choice.best.layout.tp * choice.best.layout.cp <= 8);
    if (bytesPerSecond < 10e9)
      CHECK(choice.best.layout.pp > 1);
  }
}

TEST_CASE("Tighter memory never makes the best step shorter") {
  Target target = *findTarget("megatron");
  ModelWork work = llama8b(target);
  double last = 0;
  for (double gigabytes : {200.0, 80.0, 60.0, 40.0}) {
    Machine machine = boxes("H100-SXM5-80GB", 16);
    machine.device.memoryBytes = gigabytes * 1e9;
    LayoutChoice choice = choose(work, machine, target, 64);
    CHECK(choice.best.time.seconds >= last);
    CHECK(choice.best.memory.total <= choice.best.usableBytes);
    last = choice.best.time.seconds;
  }
}

TEST_CASE("Devices that no layout can use stay idle, and that is said") {
  Target target = *findTarget("fsdp");
  ModelShape shape = llamaShape(1024, 8, 4096);
  shape.vocabulary = 1000;
  LayoutChoice choice = choose(llamaWork(4, shape, target),
                               boxes("A100-SXM4-80GB", 7), target, 64);
  CHECK(choice.best.layout.devices() == 4);
  CHECK(choice.idleDevices == 3);
  REQUIRE_FALSE(choice.best.remarks.empty());
  CHECK(choice.best.remarks.back() ==
        "3 of 7 devices stay idle: no layout uses all");
}

TEST_CASE("The same question gives the same bytes") {
  Target target = *findTarget("megatron");
  Machine machine = boxes("A100-SXM4-80GB", 16);
  std::string first;
  for (int run = 0; run < 20; ++run) {
    ModelWork work = llama8b(target);
    LayoutChoice choice = choose(work, machine, target, 64);
    const std::string text = writeJson(toJson(choice, machine, target));
    if (run == 0)
      first = text;
    CHECK(text == first);
  }
}

TEST_CASE("A search that is stopped gives its best so far, with a bound") {
  Target target = *findTarget("megatron");
  ModelWork work = llama70b(target);
  Machine machine = boxes("H100-SXM5-80GB", 64);
  LayoutRequest request;
  request.globalBatch = 128;
  auto complete = chooseLayout(work, machine, target, request);
  REQUIRE(complete);
  request.onProgress = [](const SearchProgress &progress) {
    return progress.bestSeconds == 0;
  };
  auto stopped = chooseLayout(work, machine, target, request);
  REQUIRE(stopped);
  CHECK_FALSE(stopped->isComplete);
  CHECK(stopped->best.time.seconds >= complete->best.time.seconds);
  CHECK(stopped->boundSeconds <= complete->best.time.seconds);
  request.onProgress = [](const SearchProgress &) { return false; };
  auto none = chooseLayout(work, machine, target, request);
  if (!none)
    CHECK(none.error().code == ExitCode::Limit);
}

TEST_CASE("126 layers on thousands of devices") {
  Target target = *findTarget("megatron");
  ModelWork work = llamaWork(126, llamaShape(16384, 128, 53248), target);
  Machine machine = boxes("H100-SXM5-80GB", 16384);
  LayoutChoice choice = choose(work, machine, target, 2048);
  INFO(summarize(choice, machine, target));
  CHECK(choice.best.fits);
  CHECK(choice.gap() < 0.05);
  CHECK(choice.best.layout.devices() == 16384);
}
