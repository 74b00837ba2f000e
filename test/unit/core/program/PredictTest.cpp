//===- PredictTest.cpp ----------------------------------------------------===//
//
// Traffic and peak memory of small programs, by hand.
//
//===----------------------------------------------------------------------===//
#include "core/program/Strides.h"
#include "core/program/Verify.h"
#include "test/support/ProgramBuilder.h"

#include <catch2/catch.hpp>

using namespace monarch;

namespace {

/// Calls with numbers are counted with this much on top.
constexpr int64_t Scratch = 64;
constexpr int64_t Width = 4; // float32

/// One stage, one rank, tensors of `count` floats.
struct SmallProgram {
  Program program;
  test::RoleBuilder builder;

  explicit SmallProgram(int64_t units = 1)
      : builder((program.roles.resize(1), program.roles[0])) {
    program.unitRows = 1;
    program.unitsPerReplica = units;
    program.globalRows = units;
  }
  int32_t floats(const std::string &name, int64_t count,
                 Lifetime lifetime = Lifetime::Local, int32_t aliasOf = None) {
    return builder.value(name, {Expr::constant(count)}, lifetime,
                         DType::Float32, aliasOf);
  }
  int32_t parameter(int64_t count) {
    ProgramParameter made;
    made.value = floats("weight", count, Lifetime::Persistent);
    made.names = {"weight"};
    made.structure = {plainDim(count)};
    program.roles[0].parameters.push_back(made);
    return made.value;
  }
  void schedule(std::vector<Slot> slots) {
    program.roles[0].schedule = std::move(slots);
  }
  int64_t peak() const { return peakBytesOf(program, 0); }
};

} // namespace

TEST_CASE("traffic is counted by the table, per run of a segment") {
  Program program = test::sampleProgram();
  // Rank 0 holds 3 of 5 columns, rank 1 two; both have 2 rows and 2 units.
  Traffic first = trafficOf(program, 0);
  CHECK(first.bytes ==
        std::map<std::string, int64_t>{{"all_gather", 2 * (2 * 3 * Width)},
                                       {"reduce_scatter", 2 * (2 * 2 * Width)},
                                       {"all_to_all", 2 * (2 * 2 * Width)},
                                       {"send", 2 * (2 * 3 * Width)},
                                       {"all_reduce", Width}});
  CHECK(first.collectives ==
        std::map<std::string, int64_t>{{"all_gather", 2},
                                       {"reduce_scatter", 2},
                                       {"all_to_all", 2},
                                       {"send", 2},
                                       {"all_reduce", 1}});
  Traffic last = trafficOf(program, 3);
  CHECK(last.bytes == std::map<std::string, int64_t>{
                          {"send", 2 * (2 * 2 * Width)},
                          {"all_reduce", 2 * (2 * 4 * Width) + Width}});

  predict(program);
  Traffic sum;
  int64_t peak = 0;
  for (int64_t rank = 0; rank < program.worldSize(); ++rank) {
    Traffic traffic = trafficOf(program, rank);
    for (const auto &[kind, bytes] : traffic.bytes)
      sum.bytes[kind] += bytes;
    for (const auto &[kind, count] : traffic.collectives)
      sum.collectives[kind] += count;
    peak = std::max(peak, peakBytesOf(program, rank));
  }
  CHECK(program.predicted == sum);
  CHECK(program.predictedPeakBytes == peak);
}

TEST_CASE("a collective over one rank sends nothing") {
  SmallProgram small;
  small.program.mesh.axes = {{"tp", 1, AxisRole::Tensor}};
  int32_t a = small.floats("a", 10);
  small.builder.call("aten::ones", {}, a);
  small.builder.add(InstructionKind::AllReduce, {a}, {}, {0}).name = "sum";
  small.schedule({{SegmentKind::Forward, 0}});
  CHECK(trafficOf(small.program, 0) == Traffic());
}

TEST_CASE("parameters and optimizer states are always there") {
  for (bool adamW : {false, true}) {
    SmallProgram small;
    small.program.optimizer = adamW ? OptimizerKind::AdamW : OptimizerKind::SGD;
    int32_t weight = small.parameter(100);
    int32_t gradient = small.floats("gradient", 100, Lifetime::Carried);
    small.program.roles[0].zeroed = {gradient};
    small.builder.in(SegmentKind::Step);
    small.builder.add(InstructionKind::Update, {weight, gradient}, {});
    small.schedule({{SegmentKind::Step, -1}});
    CHECK(small.peak() == (adamW ? 4 : 2) * 100 * Width);
  }
}

TEST_CASE("results live with their operands until these are freed") {
  SmallProgram small;
  int32_t a = small.floats("a", 1000), b = small.floats("b", 500),
          c = small.floats("c", 200);
  small.builder.call("aten::ones", {}, a);
  small.builder.call("aten::sum", {a}, b);
  small.builder.free({a});
  small.builder.call("aten::sum", {b}, c);
  small.builder.free({b, c});
  small.schedule({{SegmentKind::Forward, 0}});
  CHECK(small.peak() == 1500 * Width + Scratch);
}

TEST_CASE("a view keeps its base's storage and adds none") {
  SmallProgram small;
  int32_t a = small.floats("a", 1000);
  int32_t view = small.floats("view", 1000, Lifetime::Local, a);
  int32_t b = small.floats("b", 300);
  small.builder.call("aten::ones", {}, a);
  small.builder.call("aten::view", {a}, view);
  small.builder.free({a});
  small.builder.call("aten::sum", {view}, b);
  small.builder.free({view, b});
  small.schedule({{SegmentKind::Forward, 0}});
  CHECK(small.peak() == 1300 * Width + Scratch);
}

TEST_CASE("saved values are counted for each unit in flight") {
  auto peakOf = [](std::vector<Slot> slots) {
    SmallProgram small(3);
    int32_t a = small.floats("a", 1000, Lifetime::Saved);
    small.builder.in(SegmentKind::Forward);
    small.builder.call("aten::ones", {}, a);
    small.builder.in(SegmentKind::Backward);
    small.builder.free({a});
    small.schedule(std::move(slots));
    return small.peak();
  };
  constexpr SegmentKind F = SegmentKind::Forward, B = SegmentKind::Backward;
  CHECK(peakOf({{F, 0}, {B, 0}, {F, 1}, {B, 1}, {F, 2}, {B, 2}}) ==
        1000 * Width + Scratch);
  CHECK(peakOf({{F, 0}, {F, 1}, {B, 0}, {F, 2}, {B, 1}, {B, 2}}) ==
        2000 * Width + Scratch);
  CHECK(peakOf({{F, 0}, {F, 1}, {F, 2}, {B, 0}, {B, 1}, {B, 2}}) ==
        3000 * Width + Scratch);
}

TEST_CASE("a send holds its tensor until the next unit's backward is over") {
  auto peakOf = [](bool sends) {
    SmallProgram small(3);
    int32_t a = small.floats("a", 1000);
    small.builder.in(SegmentKind::Backward);
    small.builder.call("aten::ones", {}, a);
    if (sends)
      small.builder.add(InstructionKind::Send, {a}, {}).peerStage = 1;
    small.builder.free({a});
    constexpr SegmentKind B = SegmentKind::Backward;
    small.schedule({{B, 0}, {B, 1}, {B, 2}});
    return small.peak();
  };
  CHECK(peakOf(false) == 1000 * Width + Scratch);
  CHECK(peakOf(true) == 2000 * Width + Scratch);
}

TEST_CASE("zero makes a tensor off coordinate 0 only") {
  SmallProgram small;
  small.program.mesh.axes = {{"tp", 2, AxisRole::Tensor}};
  int32_t a = small.floats("a", 1000);
  int32_t kept = small.floats("kept", 1000, Lifetime::Local, a);
  small.builder.call("aten::ones", {}, a);
  small.builder.add(InstructionKind::Zero, {a}, {kept}, {0});
  small.builder.free({a, kept});
  small.schedule({{SegmentKind::Forward, 0}});
  CHECK(peakBytesOf(small.program, 0) == 1000 * Width + Scratch);
  CHECK(peakBytesOf(small.program, 1) == 2000 * Width);
}

TEST_CASE("strides of views tell which are contiguous") {
  SmallProgram small;
  auto number = [](int64_t value) { return Expr::constant(value); };
  auto view = [&](const std::string &call, int32_t from,
                  std::vector<Expr> shape, std::vector<CallArg> more) {
    int32_t result = small.builder.value(call, std::move(shape),
                                         Lifetime::Local, DType::Float32, from);
    return small.builder.call("aten::" + call, {from}, result, std::move(more));
  };
  int32_t a = small.builder.value("a", {number(4), number(6)});
  small.builder.call("aten::ones", {}, a);
  std::vector<std::pair<int32_t, bool>> expected = {
      {a, true},
      {view("view", a, {number(24)}, {}), true},
      {view("t", a, {number(6), number(4)}, {}), false},
      {view("transpose.int", a, {number(4), number(6)},
            {number(1), number(-1)}),
       true},
      {view("slice.Tensor", a, {number(2), number(6)},
            {number(0), number(1), number(3), number(1)}),
       true},
      {view("slice.Tensor", a, {number(4), number(3)},
            {number(1), number(0), number(3), number(1)}),
       false},
      {view("select.int", a, {number(6)}, {number(0), number(1)}), true},
      {view("select.int", a, {number(4)}, {number(1), number(1)}), false},
      {view("unbind.int", a, {number(6)}, {number(0)}), true},
      {view("unbind.int", a, {number(4)}, {number(1)}), false},
      {view("expand", a, {number(2), number(4), number(6)}, {}), false},
      {view("unsqueeze", a, {number(4), number(1), number(6)}, {number(1)}),
       true},
      {view("permute", a, {number(6), number(4)},
            {std::vector<Expr>{number(1), number(0)}}),
       false}};
  int32_t t = expected[2].first;
  expected.push_back(
      {view("unsqueeze", t, {number(6), number(4), number(1)}, {number(2)}),
       false});
  expected.push_back({view("t", t, {number(4), number(6)}, {}), true});
  StageSizes sizes(small.program, small.program.roles[0]);
  std::vector<bool> contiguous = contiguousValues(sizes, 0);
  for (const auto &[id, isContiguous] : expected) {
    INFO(id << " " << small.program.roles[0].values[id].name);
    CHECK(contiguous[id] == isContiguous);
  }
}
