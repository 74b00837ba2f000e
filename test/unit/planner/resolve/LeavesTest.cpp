// Leaves that little reads: every persistent buffer is held, and those that
// change from unit to unit keep their order.
#include "planner/resolve/Resolve.h"
#include "test/support/GraphBuilder.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace monarch;
using namespace monarch::planner;

namespace {

/// x w, beside a counter that nothing reads and a buffer that nothing touches.
Graph counting() {
  test::GraphBuilder builder;
  const ValueId x = builder.input("x", {4, 8}, DType::Float64);
  const ValueId w = builder.parameter("w", {8, 6});
  const ValueId calls = builder.buffer("calls", {1});
  builder.buffer("unread", {3});
  builder.op("aten::mm", {x, w}, {OperandArg{0}, OperandArg{1}}, {4, 6});
  const ValueId more = builder.op("aten::add.Scalar", {calls},
                                  {OperandArg{0}, int64_t{1}, int64_t{1}}, {1});
  builder.graph.unitRows = 4;
  for (Buffer &buffer : builder.graph.buffers)
    if (buffer.value == calls)
      buffer.updated = more;
  return builder.finish();
}

bool holds(const Program &program, const std::string &name) {
  return std::any_of(
      program.roles.begin(), program.roles.end(), [&](const Role &role) {
        return std::any_of(role.buffers.begin(), role.buffers.end(),
                           [&](const ProgramBuffer &buffer) {
                             return buffer.names[0] == name;
                           });
      });
}

} // namespace

TEST_CASE("Buffers that nothing reads are held, and updated") {
  const Graph graph = counting();
  const StrategySpace space(graph);
  const auto resolved = resolve(space, oneProcess(graph, space, 4));
  REQUIRE(resolved);
  CHECK(holds(resolved->program, "calls"));
  CHECK(holds(resolved->program, "unread"));
  int copies = 0;
  for (const Segment &segment : resolved->program.roles[0].segments)
    for (const Instruction &instruction : segment.instructions)
      copies += instruction.name == "aten::copy_";
  CHECK(copies == 1);
}

TEST_CASE("A clone may read the count of a mean") {
  test::GraphBuilder builder;
  const ValueId x = builder.input("x", {4, 8}, DType::Float64);
  const ValueId w = builder.parameter("w", {8, 6});
  const ValueId count = builder.inverseCount(None);
  const ValueId scaled = builder.op("aten::mul.Tensor", {x, count},
                                    {OperandArg{0}, OperandArg{1}}, {4, 8});
  builder.op("aten::mm", {scaled, w}, {OperandArg{0}, OperandArg{1}}, {4, 6});
  builder.graph.unitRows = 4;
  builder.graph.counts.back().perUnit = 32;
  const Graph graph = builder.finish();
  const StrategySpace space(graph);
  CHECK(space.isCloned(builder.producer(scaled)));
  CHECK(resolve(space, oneProcess(graph, space, 4)));
}

TEST_CASE("Buffers that change from unit to unit allow one replica alone") {
  const Graph graph = counting();
  const StrategySpace space(graph);
  Decisions plan = oneProcess(graph, space, 8);
  CHECK(check(plan, space).empty());
  plan.mesh.axes = {{"dp", 2, AxisRole::Data}};
  for (auto &choices : plan.choice)
    choices.assign(1, 0);
  for (auto &passes : plan.passPartialCotangent)
    passes.assign(1, false);
  for (Layout &layout : plan.parameterLayout)
    layout = Layout::replicated(1);
  const std::vector<Error> errors = check(plan, space);
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].what.find("one replica") != std::string::npos);
}
