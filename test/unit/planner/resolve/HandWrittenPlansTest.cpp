// The communication of Megatron and of FSDP comes out of hand-written choices,
// with no rule for either.
#include "core/program/Verify.h"
#include "core/support/Files.h"
#include "planner/resolve/DeriveLayouts.h"
#include "planner/resolve/Resolve.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace monarch;
using namespace monarch::planner;

namespace {

constexpr int Layers = 2;

Graph gpt() {
  const auto text = readFile(MONARCH_FIXTURES "/graphs/gpt-small.json");
  REQUIRE(text);
  auto graph = readGraph(*text);
  REQUIRE(graph);
  return std::move(*graph);
}

Decisions wholeOn(const StrategySpace &space, std::vector<MeshAxis> axes) {
  const Graph &graph = space.graph();
  Decisions plan;
  plan.mesh.axes = std::move(axes);
  plan.unitRows = plan.globalRows = graph.unitRows;
  const size_t count = plan.mesh.axes.size();
  plan.stage.assign(graph.ops.size(), 0);
  plan.choice.assign(graph.ops.size(), std::vector<int>(count, 0));
  plan.passPartialCotangent.assign(graph.ops.size(),
                                   std::vector<bool>(count, false));
  plan.keepGathered.assign(graph.ops.size(), true);
  plan.parameterLayout.assign(graph.parameters.size(),
                              Layout::replicated(count));
  for (OpId id = 0; id < static_cast<OpId>(graph.ops.size()); ++id) {
    const Op &op = graph.ops[id];
    const bool sum = op.phase == Phase::Backward && op.forward == None;
    if (sum || (op.phase == Phase::Forward && space.rule(id)->follows))
      plan.choice[id].assign(count, Follow);
  }
  return plan;
}

/// Parameters at rest as their first reader wants them.
void restAsUsed(Decisions &plan, const StrategySpace &space) {
  const Graph &graph = space.graph();
  const DerivedLayouts derived = deriveLayouts(space, plan);
  for (size_t p = 0; p < graph.parameters.size(); ++p)
    for (OpId id = static_cast<OpId>(graph.ops.size()) - 1; id >= 0; --id)
      for (size_t k = 0; k < graph.ops[id].operands.size(); ++k)
        if (graph.ops[id].phase == Phase::Forward &&
            graph.ops[id].operands[k] == graph.parameters[p].value)
          plan.parameterLayout[p] = derived.ops[id].operands[k];
  // A bias that is added once is wanted partial; it rests replicated.
  for (Layout &layout : plan.parameterLayout)
    for (AxisState &state : layout.states)
      if (state.isPartial())
        state = AxisState::replicated();
}

bool endsWith(const std::string &text, std::string_view end) {
  return text.size() >= end.size() &&
         text.compare(text.size() - end.size(), end.size(), end) == 0;
}

/// Columns, then rows, as Megatron-LM splits attention and MLP.
Decisions megatron(const StrategySpace &space, std::vector<MeshAxis> axes) {
  const Graph &graph = space.graph();
  Decisions plan = wholeOn(space, std::move(axes));
  const auto pin = [&](OpId id, std::string_view choice) {
    const int index = space.findChoice(id, choice);
    INFO(graph.ops[id].name << " in " << graph.ops[id].module);
    REQUIRE(index >= 0);
    plan.choice[id].assign(plan.mesh.axes.size(), index);
  };
  for (OpId id = 0; id < static_cast<OpId>(graph.ops.size()); ++id) {
    const Op &op = graph.ops[id];
    if (op.phase != Phase::Forward)
      continue;
    if (op.name == "monarch::attention")
      pin(id, "h");
    else if (op.name == "aten::gelu")
      pin(id, "d2");
    else if (op.name == "aten::addmm")
      pin(id, endsWith(op.module, "qkv")    ? "j.0"
              : endsWith(op.module, "proj") ? "k.0"
              : endsWith(op.module, "up")   ? "j"
                                            : "k");
  }
  restAsUsed(plan, space);
  return plan;
}

int64_t count(const Program &program, SegmentKind segment,
              InstructionKind kind) {
  int64_t found = 0;
  for (const Role &role : program.roles)
    for (const Segment &s : role.segments)
      if (s.kind == segment)
        found +=
            std::count_if(s.instructions.begin(), s.instructions.end(),
                          [&](const Instruction &i) { return i.kind == kind; });
  return found;
}

Program proved(const StrategySpace &space, const Decisions &plan) {
  auto resolved = resolve(space, plan);
  if (!resolved)
    FAIL(toString(resolved.error()));
  for (const Error &error : verify(resolved->program))
    FAIL(toString(error));
  return std::move(resolved->program);
}

} // namespace

TEST_CASE("Megatron's pins cost two all-reduces a layer forward and backward") {
  const Graph graph = gpt();
  const StrategySpace space(graph);
  const auto axes = GENERATE(std::vector<MeshAxis>{{"tp0", 2}},
                             std::vector<MeshAxis>{{"tp0", 2}, {"tp1", 2}});
  const Program program = proved(space, megatron(space, axes));
  for (SegmentKind segment : {SegmentKind::Forward, SegmentKind::Backward}) {
    CHECK(count(program, segment, InstructionKind::AllReduce) == 2 * Layers);
    CHECK(count(program, segment, InstructionKind::AllGather) == 0);
    CHECK(count(program, segment, InstructionKind::ReduceScatter) == 0);
    CHECK(count(program, segment, InstructionKind::AllToAll) == 0);
  }
  // The norm of all gradients; the gradients themselves are where they belong.
  CHECK(count(program, SegmentKind::Step, InstructionKind::AllReduce) == 1);
}

TEST_CASE("Under tp=4 no rank holds a block's matrix whole") {
  const Graph graph = gpt();
  const StrategySpace space(graph);
  const Program program =
      proved(space, megatron(space, {{"tp0", 2}, {"tp1", 2}}));
  int matrices = 0;
  for (const ProgramParameter &parameter : program.roles[0].parameters) {
    if (parameter.structure.size() != 2 ||
        parameter.names[0].find("blocks.") == std::string::npos)
      continue;
    ++matrices;
    const int64_t whole =
        parameter.structure[0].size * parameter.structure[1].size;
    for (int64_t rank = 0; rank < program.mesh.size(); ++rank) {
      const std::vector<int64_t> local =
          localShape(parameter.structure, parameter.layout, program.mesh,
                     program.tables, program.mesh.coordinates(rank));
      CHECK(local[0] * local[1] * 4 == whole);
    }
  }
  CHECK(matrices == 4 * Layers);
}

TEST_CASE(
    "A batch split with parameters sharded at rest gathers each parameter "
    "once and scatters each gradient once") {
  const Graph graph = gpt();
  const StrategySpace space(graph);
  Decisions plan = wholeOn(space, {{"dp0", 2}});
  for (OpId id = 0; id < static_cast<OpId>(graph.ops.size()); ++id) {
    plan.passPartialCotangent[id][0] = true;
    const Op &op = graph.ops[id];
    if (op.phase != Phase::Forward || plan.choice[id][0] == Follow)
      continue;
    const Value &result = graph.values[op.results[0]];
    const std::vector<Choice> &choices = space.choices(id);
    // The sum of losses stays partial where it is divided by the count.
    if (op.name == "aten::mul.Tensor" && result.shape.empty())
      plan.choice[id][0] = space.findChoice(id, "pass0");
    for (size_t c = 0; c < choices.size(); ++c) {
      const Column column = space.column(id, choices[c]);
      const AxisState &state = column.results[0];
      const bool batch =
          state.isSplit()
              ? result.batch[state.dim] != 0 && state.factors[0] == 0
              : op.name == "aten::nll_loss_forward" && choices[c].name == "n.0";
      if (batch)
        plan.choice[id][0] = static_cast<int>(c);
    }
  }
  for (size_t p = 0; p < graph.parameters.size(); ++p) {
    const TensorStructure &structure =
        space.structure(graph.parameters[p].value);
    plan.parameterLayout[p].states[0] =
        AxisState::split(0, std::vector<int>(structure[0].sections.size(), 0));
  }
  const Program program = proved(space, plan);
  const int64_t parameters = static_cast<int64_t>(graph.parameters.size());
  CHECK(count(program, SegmentKind::Forward, InstructionKind::AllGather) ==
        parameters);
  CHECK(count(program, SegmentKind::Backward, InstructionKind::AllGather) == 0);
  CHECK(count(program, SegmentKind::Step, InstructionKind::ReduceScatter) ==
        parameters);
  for (SegmentKind segment : {SegmentKind::Forward, SegmentKind::Backward})
    CHECK(count(program, segment, InstructionKind::AllReduce) == 0);
}
