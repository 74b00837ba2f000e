//===- PriceTest.cpp - time of calls, collectives and pipelines -----------===//
#include "planner/cost/Price.h"

#include <catch2/catch.hpp>

using namespace monarch;
using namespace monarch::planner;

namespace {

constexpr int64_t Microsecond = 1'000'000;

/// 1 TFLOP/s, 1 GB/s of memory, no launch; nodes of 4 at 100 MB/s and 1 us,
/// joined at 10 MB/s and 5 us.
Cluster toyCluster() {
  Expected<Cluster> cluster = readCluster(R"({
    "schema": "monarch.cluster/1",
    "devices": {"toy": {"memory": "1GB", "memory_bw": "1GB/s",
                        "peak": {"float64": "1TFLOP/s"}}},
    "nodes": [{"count": 2, "per_node": 4, "device": "toy"}],
    "levels": [{"name": "in", "size": 4, "bw": "100MB/s", "latency": "1us"},
               {"name": "out", "size": 8, "bw": "10MB/s", "latency": "5us"}]})");
  REQUIRE(cluster);
  return *cluster;
}

Mesh meshOf(std::vector<int64_t> sizes) {
  Mesh mesh;
  for (int64_t size : sizes)
    mesh.axes.push_back(
        {"a" + std::to_string(mesh.axes.size()), size, AxisRole::Tensor});
  return mesh;
}

ProgramValue vectorOf(int64_t elements) {
  ProgramValue value;
  value.type = DType::Float64;
  value.shape = {Expr::constant(elements)};
  return value;
}

/// Two stages; forward: add, send or receive; backward the other way round.
Program pipeline(int64_t units) {
  Program program;
  program.unitsPerReplica = units;
  for (int stage = 0; stage < 2; ++stage) {
    Role role;
    role.stage = stage;
    role.values = {vectorOf(1000), vectorOf(1000), vectorOf(1000)};
    Instruction work;
    work.name = "aten::add.Tensor";
    work.operands = {0, 0};
    work.results = {1};
    Instruction message;
    message.kind =
        stage == 0 ? InstructionKind::Send : InstructionKind::Receive;
    (stage == 0 ? message.operands : message.results) = {1};
    message.peerStage = 1 - stage;
    message.tag = 1;
    Segment forward{SegmentKind::Forward, {}};
    forward.instructions =
        stage == 0 ? std::vector{work, message} : std::vector{message, work};
    role.segments = {forward};
    for (int64_t unit = 0; unit < units; ++unit)
      role.schedule.push_back({SegmentKind::Forward, unit});
    program.roles.push_back(std::move(role));
  }
  return program;
}

} // namespace

TEST_CASE("Picoseconds are rounded up and do not overflow") {
  CHECK(picosecondsFor(1, 1'000'000'000'000) == 1);
  CHECK(picosecondsFor(3, 2'000'000'000'000) == 2);
  CHECK(picosecondsFor(1'000, 1'000, Million / 2) == 2'000'000'000'000);
  CHECK(picosecondsFor(int64_t(1) << 50, int64_t(1) << 40) ==
        1024'000'000'000'000);
  CHECK(picosecondsFor(0, 5) == 0);
}

TEST_CASE("A ring in a node and one across nodes") {
  Cluster cluster = toyCluster();
  Mesh mesh = meshOf({2, 4});
  Links links(cluster, mesh);
  // 4 ranks of a node: 3 steps of latency, the node's bandwidth.
  CHECK(links.ringPicoseconds(0, {1}, 1000, 1) ==
        3 * Microsecond + 10 * Microsecond);
  CHECK(links.ringPicoseconds(0, {1}, 1000, 2) ==
        6 * Microsecond + 10 * Microsecond);
  // One rank a node: one link of the outer level.
  CHECK(links.ringPicoseconds(0, {0}, 1000, 1) ==
        5 * Microsecond + 100 * Microsecond);
  // All eight: the four links of a node together, and the latency of both.
  CHECK(links.ringPicoseconds(0, {0, 1}, 1000, 1) ==
        8 * Microsecond + 25 * Microsecond);
  CHECK(links.ringPicoseconds(0, {}, 1000, 1) == 0);
}

TEST_CASE("An exchange pays each rank's own link for what leaves the node") {
  Cluster cluster = toyCluster();
  Mesh mesh = meshOf({2, 4});
  Links links(cluster, mesh);
  CHECK(links.exchangePicoseconds(0, {1}, 700) ==
        3 * Microsecond + 7 * Microsecond);
  // 4 of the 7 peers are in the other node.
  CHECK(links.exchangePicoseconds(0, {0, 1}, 700) ==
        8 * Microsecond + 40 * Microsecond);
}

TEST_CASE("Stages that share a node hop inside it") {
  Cluster cluster = toyCluster();
  Mesh two = meshOf({2});
  Links links(cluster, two);
  CHECK(links.hop(0, 1, 1000).busyPicoseconds == 10 * Microsecond);
  CHECK(links.hop(0, 1, 1000).latencyPicoseconds == 1 * Microsecond);
  CHECK(links.hop(1, 2, 1000).busyPicoseconds == 100 * Microsecond);
  Mesh three = meshOf({3});
  Links uneven(cluster, three);
  CHECK(uneven.hop(0, 1, 1000).busyPicoseconds == 100 * Microsecond);
}

TEST_CASE("A group that does not begin at a node's border spans two") {
  Cluster cluster = toyCluster();
  Mesh mesh = meshOf({3});
  Links links(cluster, mesh);
  CHECK(links.ringPicoseconds(0, {0}, 1000, 1) == 12 * Microsecond);
  CHECK(links.ringPicoseconds(1, {0}, 1000, 1) > 100 * Microsecond);
}

TEST_CASE("A pipeline of two stages fills, runs and drains") {
  Cluster cluster = toyCluster();
  // The add moves 24 kB at 1 GB/s: 24 us; the message takes 80 us on a link of
  // 100 MB/s and 1 us more.
  for (int64_t units : {1, 2, 5}) {
    Expected<Price> cost = price(pipeline(units), cluster);
    REQUIRE(cost);
    int64_t slowest = 80 * Microsecond;
    CHECK(cost->stepPicoseconds == 24 * Microsecond + units * slowest +
                                       1 * Microsecond + 24 * Microsecond);
    CHECK(cost->stages[0].forwardPicoseconds == units * 24 * Microsecond);
    CHECK(cost->stages[1].idlePicoseconds ==
          cost->stepPicoseconds - units * 24 * Microsecond);
    CHECK(*price(pipeline(units), cluster) == *cost);
  }
}

TEST_CASE("A receive that nobody sends to is an error") {
  Program program = pipeline(1);
  program.roles[0].schedule.clear();
  CHECK_FALSE(price(program, toyCluster()));
}

TEST_CASE("The rank with the largest block is priced under any table") {
  Cluster cluster = toyCluster();
  Program program;
  program.mesh = meshOf({2});
  Role role;
  Shard shard;
  shard.structure = plainDim(10000);
  shard.cuts = {{0, {0}}};
  role.shards = {shard};
  ProgramValue half;
  half.type = DType::Float64;
  half.shape = {Expr::size({0})};
  role.values = {half, half};
  Instruction work;
  work.name = "aten::add.Tensor";
  work.operands = {0, 0};
  work.results = {1};
  role.segments = {{SegmentKind::Forward, {work}}};
  role.schedule = {{SegmentKind::Forward, 0}};
  program.roles = {role};
  int64_t even = price(program, cluster)->stepPicoseconds;
  CHECK(even == 120 * Microsecond);
  program.tables.set(10000, 2, {0, 8000, 10000});
  CHECK(price(program, cluster)->stepPicoseconds == 192 * Microsecond);
}
