// A step that is broken on purpose is the one that is named.
#include "test/plans/Locate.h"
#include "test/plans/ModelCase.h"
#include "test/support/GptGraph.h"
#include "test/support/RandomPlan.h"

#include <catch2/catch.hpp>
#include <random>

using namespace monarch;
using namespace monarch::test;
using planner::ResolvedStep;

namespace {

/// With a module and a line for each op.
Graph modelGraph() {
  Graph graph = gptGraph({});
  for (size_t id = 0; id < graph.ops.size(); ++id) {
    graph.ops[id].module = "gpt.part" + std::to_string(id);
    graph.ops[id].source = "gpt.py:" + std::to_string(id + 1);
  }
  return graph;
}

Segment &segmentOf(Role &role, SegmentKind kind) {
  for (Segment &segment : role.segments)
    if (segment.kind == kind)
      return segment;
  FAIL("no such segment");
  return role.segments.front();
}

void insert(planner::Resolved &resolved, size_t stage, SegmentKind kind,
            size_t at, Instruction instruction) {
  auto &instructions =
      segmentOf(resolved.program.roles[stage], kind).instructions;
  instructions.insert(instructions.begin() + static_cast<ptrdiff_t>(at),
                      std::move(instruction));
  for (ResolvedStep &step : resolved.steps[stage])
    if (step.segment == kind) {
      step.begin += step.begin >= at;
      step.end += step.end >= at;
    }
}

/// Adds one to what the step makes, where that is a tensor of its own. False:
/// it is not.
bool bend(planner::Resolved &resolved, size_t stage, const ResolvedStep &step) {
  Role &role = resolved.program.roles[stage];
  if (step.made.empty() || step.made[0] == None)
    return false;
  const int32_t made = step.made[0];
  if (!isFloating(role.values[made].type) || role.values[made].aliasOf != None)
    return false;
  const auto &instructions = segmentOf(role, step.segment).instructions;
  size_t end = step.begin;
  bool isOwn = false;
  for (size_t i = step.begin; i < step.end; ++i)
    if (instructions[i].kind != InstructionKind::Free) {
      end = i + 1;
      for (int32_t result : instructions[i].results)
        isOwn |= result == made;
    }
  if (!isOwn)
    return false;
  Instruction add;
  add.name = "aten::add_.Scalar";
  add.operands = {made};
  add.results = {None};
  add.args = {OperandArg{0}, 1.0, Expr::constant(1)};
  insert(resolved, stage, step.segment, end, std::move(add));
  return true;
}

planner::Resolved resolvedPlan(const StrategySpace &space, uint64_t seed) {
  auto resolved = planner::resolve(space, randomPlan(space, seed));
  REQUIRE(resolved);
  return std::move(*resolved);
}

/// The first fault of a program that runs.
std::optional<StepFault> faultOf(const StrategySpace &space,
                                 const planner::Resolved &resolved) {
  auto fault = firstFault(space, resolved);
  if (!fault)
    FAIL(toString(fault.error()));
  return *fault;
}

} // namespace

TEST_CASE("No step of a right program is at fault") {
  const Graph graph = modelGraph();
  const StrategySpace space(graph);
  for (uint64_t seed = 0; seed < 10; ++seed) {
    INFO("seed " << seed << ": " << describe(randomPlan(space, seed)));
    const auto fault = faultOf(space, resolvedPlan(space, seed));
    INFO((fault ? describe(*fault, graph) : ""));
    CHECK(!fault);
  }
}

TEST_CASE("The step that is bent is the first at fault") {
  const Graph graph = modelGraph();
  const StrategySpace space(graph);
  std::map<ResolvedStep::Kind, int> bent;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    planner::Resolved resolved = resolvedPlan(space, seed);
    std::mt19937_64 random(seed);
    const size_t stage = random() % resolved.steps.size();
    const auto steps = resolved.steps[stage];
    const ResolvedStep step = steps[random() % steps.size()];
    if (!bend(resolved, stage, step))
      continue;
    ++bent[step.kind];
    INFO("seed " << seed << ": " << describe(randomPlan(space, seed)));
    const auto fault = faultOf(space, resolved);
    REQUIRE(fault);
    const std::string text = describe(*fault, graph);
    INFO(text);
    CHECK(fault->stage == static_cast<int>(stage));
    CHECK(fault->step.kind == step.kind);
    CHECK(fault->step.op == step.op);
    CHECK(fault->step.value == step.value);
    if (step.op != None) {
      CHECK(text.find(graph.ops[step.op].name) == 0);
      CHECK(text.find(graph.ops[step.op].module) != std::string::npos);
      CHECK(text.find(graph.ops[step.op].source) != std::string::npos);
    }
  }
  CHECK(bent[ResolvedStep::Kind::Op] >= 5);
  CHECK(bent[ResolvedStep::Kind::Reshard] +
            bent[ResolvedStep::Kind::Transfer] >=
        5);
}

TEST_CASE("A reshard that lost its all-reduce is the first at fault") {
  const Graph graph = modelGraph();
  const StrategySpace space(graph);
  int found = 0;
  for (uint64_t seed = 0; seed < 20 && found < 3; ++seed) {
    planner::Resolved resolved = resolvedPlan(space, seed);
    std::optional<ResolvedStep> broken;
    for (size_t stage = 0; stage < resolved.steps.size() && !broken; ++stage)
      for (const ResolvedStep &step : resolved.steps[stage]) {
        if (step.kind != ResolvedStep::Kind::Reshard || broken)
          continue;
        auto &instructions =
            segmentOf(resolved.program.roles[stage], step.segment).instructions;
        for (size_t i = step.begin; i < step.end; ++i)
          if (instructions[i].kind == InstructionKind::AllReduce) {
            instructions[i] = Instruction();
            instructions[i].kind = InstructionKind::Free;
            broken = step;
          }
      }
    if (!broken)
      continue;
    ++found;
    INFO("seed " << seed);
    const auto fault = faultOf(space, resolved);
    REQUIRE(fault);
    INFO(describe(*fault, graph));
    CHECK(fault->step.kind == ResolvedStep::Kind::Reshard);
    CHECK(fault->value == broken->value);
    CHECK(describe(*fault, graph).find("reshard from") == 0);
  }
  CHECK(found == 3);
}

TEST_CASE("The op that is wired otherwise is named") {
  const Graph graph = modelGraph();
  CHECK(wiringFault(graph, graph).empty());
  Graph wired = graph;
  for (size_t id = 3; id < wired.ops.size(); ++id)
    if (std::vector<ValueId> &operands = wired.ops[id].operands;
        operands.size() == 2 && operands[0] != operands[1]) {
      operands[1] = operands[0];
      const std::string fault = wiringFault(graph, wired);
      INFO(fault);
      CHECK(fault.find(graph.ops[id].name) == 0);
      CHECK(fault.find(graph.ops[id].module) != std::string::npos);
      CHECK(fault.find("as operand 1") != std::string::npos);
      return;
    }
  FAIL("no op of two operands");
}
