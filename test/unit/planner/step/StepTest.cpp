//===- StepTest.cpp - kernels, rings, pipelines and their data ------------===//
#include "planner/families/ModelShape.h"
#include "planner/step/StepTime.h"

#include <catch2/catch.hpp>
#include <cmath>

using namespace monarch;
using namespace monarch::planner;

namespace {

Machine dgx(int64_t devices) {
  Machine machine;
  machine.device = *findDevice("A100-SXM4-80GB");
  machine.devices = devices;
  machine.nodeNicBytesPerSecond = 200e9;
  return machine;
}

ModelWork gptWork(int64_t layers) {
  ModelShape shape;
  shape.hidden = 2048;
  shape.heads = shape.kvHeads = 16;
  shape.headDim = 128;
  shape.mlpHidden = 8192;
  shape.vocabulary = 51200;
  shape.sequence = 1024;
  return *workOf(*buildGraph(shape), {Fusion::Local, true}, {layers});
}

} // namespace

TEST_CASE("Large products run at the sustained rate, thin ones as bytes come") {
  Machine machine = dgx(8);
  const Constants &constants = builtInConstants();
  Kernels kernels(machine.device, constants);
  double rate = machine.device.ceilingFlops * constants.productShare;
  double large = kernels.product(1, 16384, 16384, 16384, Precision::Half);
  CHECK(large == Approx(2 * std::pow(16384.0, 3) / rate).epsilon(0.03));
  double thin = kernels.product(1, 1, 16384, 16384, Precision::Half);
  CHECK(thin == Approx(kernels.memory(2.0 * 16384 * 16384)).epsilon(0.05));
  // Half a tile more costs a whole one.
  CHECK(kernels.product(1, 4096 + 1, 4096, 4096, Precision::Half) >
        kernels.product(1, 4096, 4096, 4096, Precision::Half));
}

TEST_CASE("Spelled attention pays for its scores") {
  Machine machine = dgx(8);
  Kernels kernels(machine.device, builtInConstants());
  auto spelled =
      kernels.attention(AttentionKernel::Spelled, 16, 4096, 4096, 128, 128);
  auto fused =
      kernels.attention(AttentionKernel::Flash2, 16, 4096, 4096, 128, 128);
  CHECK(spelled.forward > 2 * fused.forward);
  CHECK(spelled.backward > fused.backward);
  // 100 is no multiple of 8: the products leave the matrix units.
  auto odd =
      kernels.attention(AttentionKernel::Spelled, 16, 4096, 4096, 100, 100);
  CHECK(odd.forward > spelled.forward);
}

TEST_CASE("Rings pay latency by hops and bytes by the slowest link") {
  Machine machine = dgx(64);
  Constants constants = builtInConstants();
  constants.linkShare = 1;
  constants.nicShare = 1;
  constants.collectiveSeconds = constants.hopSeconds =
      constants.nodeHopSeconds = 0;
  Network network(machine, constants, false);
  // Eight in a node at 300 GB/s each.
  CHECK(network.ring(Collective::AllReduce, 8e9, 8, 1) ==
        Approx(2 * 7.0 / 8 * 8e9 / 300e9));
  // All of two nodes share what the NICs of a node carry.
  CHECK(network.ring(Collective::AllGather, 16e9, 16, 1) ==
        Approx(15.0 / 16 * 16e9 / 200e9));
  // One rank a node: eight groups share a node's NICs.
  CHECK(network.ring(Collective::AllGather, 8e9, 8, 8) ==
        Approx(7.0 / 8 * 8e9 / 25e9));
  // Rings of 2020-22 enter a node through one of four NICs.
  machine.nics = 4;
  machine.nodeNicBytesPerSecond = 100e9;
  Network old(machine, constants, true);
  CHECK(old.ring(Collective::AllGather, 8e9, 8, 2) ==
        Approx(7.0 / 8 * 8e9 / 12.5e9));
  CHECK(network.ring(Collective::AllReduce, 1e9, 1, 1) == 0);
}

TEST_CASE(
    "More devices, more micro-batches and interleaving help as they must") {
  ModelWork work = gptWork(24);
  Machine machine = dgx(32);
  Target target = *findTarget("megatron-2021");
  StepModel model(work, machine, target, builtInConstants());
  StepLayout layout;
  layout.globalBatch = 128;
  layout.pp = 4;
  layout.tp = 8;
  StepTime plain = model.price(layout);
  CHECK(plain.bubble > 0);
  CHECK(plain.seconds ==
        Approx(plain.stage + plain.bubble + plain.data + plain.optimizer +
               builtInConstants().stepSeconds));
  StepLayout chunked = layout;
  chunked.chunks = 3;
  CHECK(model.price(chunked).bubble < plain.bubble);
  StepLayout recomputed = layout;
  recomputed.recompute = Recompute::Full;
  double ratio = model.price(recomputed).seconds / plain.seconds;
  CHECK(ratio > 1.2);
  CHECK(ratio < 1.4);
  StepLayout larger = layout;
  larger.globalBatch = 256;
  CHECK(model.price(larger).seconds < 2 * plain.seconds);
}

TEST_CASE("Sequence parallelism keeps the bytes and saves traffic") {
  ModelWork work = gptWork(24);
  Machine machine = dgx(8);
  Target target = *findTarget("megatron-2022");
  StepModel model(work, machine, target, builtInConstants());
  StepLayout layout;
  layout.tp = 8;
  layout.microBatch = 4;
  layout.globalBatch = 16;
  StepTime whole = model.price(layout);
  layout.isSequenceParallel = true;
  StepTime split = model.price(layout);
  CHECK(split.layer.forward < whole.layer.forward);
  CHECK(split.layer.forwardExchange ==
        Approx(whole.layer.forwardExchange).epsilon(0.15));
}

TEST_CASE("A bare A100 asks which, unknown devices get near names") {
  auto bare = findDevice("A100");
  REQUIRE_FALSE(bare);
  CHECK(bare.error().fix.find("A100-SXM4-40GB") != std::string::npos);
  CHECK(bare.error().fix.find("A100-SXM4-80GB") != std::string::npos);
  CHECK(findDevice("a100-sxm-80gb")->memoryBytes == 80e9);
  CHECK(findDevice("A100-SXM4-40GB")->memoryBytes == 40e9);
  auto unknown = findDevice("H1000");
  REQUIRE_FALSE(unknown);
  CHECK(unknown.error().fix.find("H100") != std::string::npos);
}

TEST_CASE("Devices without a measured rate never get the peak") {
  for (const DeviceModel &device : deviceModels()) {
    INFO(device.name);
    CHECK(device.ceilingFlops > 0);
    CHECK(device.ceilingFlops < 0.95 * device.peakFlops);
    CHECK(device.memoryBytesPerSecond > 1e11);
    CHECK_FALSE(device.source.empty());
  }
  CHECK_FALSE(findDevice("L40S")->isMeasured);
}

TEST_CASE("Constants lie in their ranges and targets can be found") {
  for (const ConstantField &field : constantFields())
    CHECK(builtInConstants().*field.member > 0);
  for (const ConstantRange &range : fittedConstants()) {
    INFO(range.field.name);
    CHECK(builtInConstants().*range.field.member >= range.low);
    CHECK(builtInConstants().*range.field.member <= range.high);
  }
  for (const char *name : {"megatron", "torchtitan", "deepspeed"})
    CHECK(findTarget(name));
  REQUIRE_FALSE(findTarget("megatronn"));
  CHECK(findTarget("megatronn").error().fix.find("megatron") !=
        std::string::npos);
}
