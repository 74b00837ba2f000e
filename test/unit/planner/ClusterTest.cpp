//===- ClusterTest.cpp - quantities, cluster files, presets ---------------===//
#include "planner/cluster/Cluster.h"
#include "planner/cluster/KnownMachines.h"
#include "planner/cluster/Units.h"

#include <catch2/catch.hpp>

using namespace monarch;
using namespace monarch::planner;

namespace {

std::string smallCluster(const std::string &memory) {
  return R"({
  // one node
  "schema": "monarch.cluster/1",
  "name": "small",
  "nodes": [{"device": "toy", "per_node": 4}],
  "devices": {"toy": {)" +
         memory + R"(, "memory_bw": "10GB/s",
    "peak": {"float32": "1TFLOP/s"}, "colour": "red"}},
  "levels": [{"name": "bus", "size": 4, "bw": "8Gb/s", "latency": "2us"}]
})";
}

} // namespace

TEST_CASE("Quantities have units and are exact") {
  CHECK(parseQuantity(Dimension::Size, "80GiB") == 85899345920);
  CHECK(parseQuantity(Dimension::Size, "80GB") == 80000000000);
  CHECK(parseQuantity(Dimension::Bandwidth, "3.35TB/s") == 3350000000000);
  CHECK(parseQuantity(Dimension::Bandwidth, "400Gb/s") == 50000000000);
  CHECK(parseQuantity(Dimension::Time, "4.5us") == 4500000);
  CHECK(parseQuantity(Dimension::Rate, "989 TFLOP/s") == 989000000000000);
  for (const char *wrong : {"80", "80GB/s", "-1GB", "GB", "1.GB", ".5GB",
                            "80gb", "1e3GB", "9999999999TB", ""})
    CHECK_FALSE(parseQuantity(Dimension::Size, wrong));
  CHECK(parseBareQuantity(Dimension::Time, "4.5e-06") == 4500000);
  CHECK(parseBareQuantity(Dimension::Size, "80") == 80);
  CHECK_FALSE(parseBareQuantity(Dimension::Size, "80GB"));
  CHECK(formatBytes(85899345920) == "80.0 GiB");
  CHECK(formatPicoseconds(4500000) == "4.50 us");
}

TEST_CASE("A cluster file is read into base units and written back canonical") {
  Expected<Cluster> cluster = readCluster(smallCluster("\"memory\": \"2GiB\""));
  REQUIRE(cluster);
  CHECK(cluster->deviceCount() == 4);
  CHECK(cluster->device.memoryBytes == int64_t(2) << 30);
  CHECK(cluster->levels[0].bytesPerSecond == 1000000000);
  CHECK(cluster->levels[0].latencyPicoseconds == 2000000);
  std::string written = writeCluster(*cluster);
  Expected<Cluster> again = readCluster(written);
  REQUIRE(again);
  CHECK(writeCluster(*again) == written);
  CHECK(written.find("\"colour\"") != std::string::npos);
  CHECK(written.find("\"2GiB\"") != std::string::npos);
}

TEST_CASE("The digest of a cluster ignores its name, not its figures") {
  Cluster a = *readCluster(smallCluster("\"memory\": \"2GiB\""));
  std::string renamed = smallCluster("\"memory\": \"2GiB\"");
  renamed.replace(renamed.find("small"), 5, "other");
  CHECK(digest(*readCluster(renamed)) == digest(a));
  CHECK(digest(*readCluster(smallCluster("\"memory\": \"3GiB\""))) !=
        digest(a));
}

TEST_CASE("A bare number is refused with the field and the legal spellings") {
  Expected<Cluster> bare = readCluster(smallCluster("\"memory\": 80"));
  REQUIRE_FALSE(bare);
  CHECK(bare.error().code == ExitCode::BadInput);
  CHECK(bare.error().what.find("/devices/toy/memory") != std::string::npos);
  CHECK(bare.error().what.find("GiB") != std::string::npos);
  CHECK(bare.error().what.find("memory_bytes") != std::string::npos);

  Expected<Cluster> named = readCluster(smallCluster("\"memory_bytes\": 80"));
  REQUIRE(named);
  CHECK(named->device.memoryBytes == 80);
}

TEST_CASE("All problems of a cluster file are listed at once") {
  Expected<Cluster> wrong = readCluster(R"({"schema": "monarch.cluster/1",
    "nodes": [{"device": "toy", "per_node": 0}],
    "devices": {"toy": {"memory": "2XB", "peak": {"float31": "1TFLOP/s"}}},
    "levels": [{"name": "bus", "size": 4, "bw": 3}]})");
  REQUIRE_FALSE(wrong);
  for (const char *pointer :
       {"/nodes/0/per_node", "/devices/toy/memory:", "/devices/toy/memory_bw",
        "/devices/toy/peak/float31", "/levels/0/bw"}) {
    INFO(pointer);
    CHECK(wrong.error().what.find(pointer) != std::string::npos);
  }
}

TEST_CASE("A file of another schema or of no JSON is refused") {
  for (const char *text : {"", "{", "[]", "{}", "{\"schema\": 3}",
                           "{\"schema\": \"monarch.cluster/2\"}"}) {
    Expected<Cluster> cluster = readCluster(text);
    REQUIRE_FALSE(cluster);
    CHECK(cluster.error().code == ExitCode::BadInput);
  }
}

TEST_CASE("Presets are named by counts and device") {
  Expected<Cluster> cluster = presetCluster("8x8xH100-SXM-80GB");
  REQUIRE(cluster);
  CHECK(cluster->deviceCount() == 64);
  CHECK(cluster->levels.size() == 2);
  CHECK(cluster->levels[0].size == 8);
  CHECK(cluster->levels[1].size == 64);
  CHECK(presetCluster("4xA100-SXM-80GB")->deviceCount() == 4);
  CHECK(presetCluster("2x8xh100-sxm5-80gb")->nodes == 2);
  CHECK(presetCluster("cpu:4")->deviceCount() == 4);
  CHECK(presetCluster("cpu:1")->deviceCount() == 1);
  for (const std::string &device : presetDevices())
    CHECK(presetCluster("2x8x" + device));
  CHECK(looksLikePreset("8xFOO"));
  CHECK(looksLikePreset("cpu:x"));
  CHECK_FALSE(looksLikePreset("cluster.json"));
  CHECK_FALSE(looksLikePreset("8x8/cluster"));
}

TEST_CASE("Unknown presets name the nearest") {
  Expected<Cluster> wrong = presetCluster("8x8xH100-SMX-80GB");
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().fix.find("H100-SXM5-80GB") != std::string::npos);
  CHECK(presetCluster("16xH100-SXM-80GB").error().fix.find("2x8xH100") !=
        std::string::npos);
  for (const char *name : {"cpu:", "cpu:0", "cpu:x", "0x8xH100-SXM-80GB", "8x"})
    CHECK_FALSE(presetCluster(name));
}

TEST_CASE("Instance types and cards are presets") {
  auto aws = presetCluster("2xp5.48xlarge");
  REQUIRE(aws);
  CHECK(aws->deviceCount() == 16);
  CHECK(aws->levels[1].bytesPerSecond == 50'000'000'000);
  // The same device behind a quarter of the network.
  auto slow = presetCluster("2xp4de.24xlarge");
  REQUIRE(slow);
  CHECK(slow->device.memoryBytes == 80'000'000'000);
  CHECK(slow->levels[1].bytesPerSecond == 6'250'000'000);
  CHECK(presetCluster("p4d.24xlarge")->device.memoryBytes == 40'000'000'000);
  for (const char *card : {"RTX3090", "RTX4090", "RTX5090", "RTXA5000",
                           "RTXA6000", "L4", "L40S", "T4"}) {
    INFO(card);
    auto cards = presetCluster("4x" + std::string(card));
    REQUIRE(cards);
    CHECK(cards->levels[0].name == "pcie");
    // Nobody measured these: said, and never the data sheet's peak.
    CHECK(cards->device.matmulEfficiency < 900'000);
    CHECK(cards->document.find("unverified") != std::string::npos);
  }
  CHECK(presetCluster("8x8xGB200")->deviceCount() == 64);
  CHECK(looksLikePreset("p5.48xlarge"));
  CHECK(looksLikePreset("A100"));
}

TEST_CASE("The step model sees a cluster's own figures") {
  Machine machine = machineOf(*presetCluster("2xp4de.24xlarge"));
  CHECK(machine.devices == 16);
  CHECK(machine.device.name == "A100-SXM4-80GB");
  CHECK(machine.nodeNicBytesPerSecond == 50e9);
  CHECK(machine.device.isMeasured);
  auto own = readCluster(smallCluster("\"memory\": \"1GB\""));
  REQUIRE(own);
  Machine small = machineOf(*own);
  CHECK(small.device.memoryBytes == 1e9);
  CHECK(small.device.ceilingFlops > 0);
}

TEST_CASE("A bare A100 asks which, a wrong instance names its neighbours") {
  for (const char *name : {"A100", "8xA100"}) {
    auto bare = presetCluster(name);
    REQUIRE_FALSE(bare);
    CHECK(bare.error().fix.find("A100-SXM4-40GB") != std::string::npos);
    CHECK(bare.error().fix.find("A100-SXM4-80GB") != std::string::npos);
  }
  auto wrong = presetCluster("p5.49xlarge");
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().fix.find("p5.48xlarge") != std::string::npos);
}

TEST_CASE("A cluster scales by nodes, or by devices where it is one node") {
  Cluster many = scaled(*presetCluster("2x8xH100-SXM-80GB"), 2);
  CHECK(many.nodes == 4);
  CHECK(many.levels[1].size == 32);
  Cluster cpus = scaled(*presetCluster("cpu:4"), 2);
  CHECK(cpus.devicesPerNode == 8);
  CHECK(cpus.levels[0].size == 8);
}
