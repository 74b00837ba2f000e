// Float32 master copies of bfloat16 parameters: what resolve writes for them,
// what it costs in bytes, and what the verifier finds when it is broken.
#include "core/program/Verify.h"
#include "planner/Planner.h"
#include "planner/resolve/Resolve.h"
#include "test/support/GptGraph.h"
#include "test/support/ProgramBuilder.h"
#include "test/support/RandomPlan.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace monarch;
using namespace monarch::planner;

namespace {

Graph narrowGpt(DType type = DType::BFloat16) {
  test::GptShape shape;
  shape.type = type;
  return test::gptGraph(shape);
}

Program resolved(const StrategySpace &space, const Decisions &decisions) {
  Expected<Resolved> made = resolve(space, decisions);
  REQUIRE(made);
  return std::move(made->program);
}

std::string findingsOf(const Program &program) {
  std::string all;
  for (const Error &error : verify(program))
    all += toString(error) + "\n";
  return all;
}

/// Elements of the parameters that are trained.
int64_t trainedElements(const Graph &graph) {
  int64_t count = 0;
  for (const Parameter &parameter : graph.parameters)
    if (parameter.trainable && !parameter.gradients.empty())
      count += byteCount(graph.value(parameter.value)) /
               byteWidth(graph.value(parameter.value).type);
  return count;
}

Decisions onTwoReplicas(const StrategySpace &space, bool masterWeights) {
  const Graph &graph = space.graph();
  Decisions plan = oneProcess(graph, space, 2 * graph.unitRows);
  plan.mesh.axes = {{"dp", 2, AxisRole::Data}};
  plan.masterWeights = masterWeights;
  plan.choice.assign(graph.ops.size(), {0});
  plan.passPartialCotangent.assign(graph.ops.size(), {false});
  plan.parameterLayout.assign(graph.parameters.size(), Layout::replicated(1));
  return plan;
}

/// ZeRO: the data axis cuts the outermost factors of dim 0.
Layout shardedByData(const TensorStructure &structure) {
  std::vector<int> factors(structure[0].sections.size(), 0);
  return canonical(withState(Layout::replicated(1), 0,
                             AxisState::split(0, std::move(factors))));
}

template <typename RoleT> auto &stepOf(RoleT &role) {
  return role.segments.back().instructions;
}

/// A finding of this id with this text.
bool finds(const Program &program, const std::string &id,
           const std::string &what) {
  const std::vector<Error> errors = verify(program);
  return std::any_of(errors.begin(), errors.end(), [&](const Error &error) {
    return error.id == id && error.what.find(what) != std::string::npos;
  });
}

} // namespace

TEST_CASE("Random plans with master weights are proved") {
  const Graph graph = narrowGpt();
  const StrategySpace space(graph);
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Decisions decisions = test::randomPlan(space, seed);
    decisions.masterWeights = true;
    INFO("seed " << seed << ": " << test::describe(decisions));
    const Program program = resolved(space, decisions);
    CHECK(findingsOf(program) == "");
    for (const Role &role : program.roles) {
      for (const ProgramParameter &parameter : role.parameters) {
        const bool isUpdated = parameter.gradient != None;
        CHECK((parameter.master != None) == isUpdated);
        if (isUpdated)
          CHECK(role.values[parameter.gradient].type == DType::Float32);
      }
      // After the units, only the loss is summed over ranks in bfloat16.
      for (const Instruction &instruction : stepOf(role))
        if (instruction.kind == InstructionKind::AllReduce ||
            instruction.kind == InstructionKind::ReduceScatter) {
          const ProgramValue &summed = role.values[instruction.operands[0]];
          CHECK((summed.type != DType::BFloat16 || summed.name == "loss"));
        }
    }
  }
}

TEST_CASE("Gradients are reduced in float32, to the byte") {
  const Graph graph = narrowGpt();
  const StrategySpace space(graph);
  const Program off = resolved(space, onTwoReplicas(space, false));
  const Program on = resolved(space, onTwoReplicas(space, true));
  // Each of two ranks sends its gradient once, two bytes an element more.
  Traffic wider = off.predicted;
  wider.bytes["all_reduce"] += 2 * trainedElements(graph) * 2;
  CHECK(on.predicted == wider);
  // Sharded at rest, parameters are gathered in their own type.
  Decisions sharded = onTwoReplicas(space, true);
  for (size_t p = 0; p < graph.parameters.size(); ++p)
    sharded.parameterLayout[p] =
        shardedByData(space.structure(graph.parameters[p].value));
  const Program shardedOn = resolved(space, sharded);
  sharded.masterWeights = false;
  const Program shardedOff = resolved(space, sharded);
  CHECK(findingsOf(shardedOn) == "");
  CHECK(shardedOn.predicted.bytes.at("all_gather") ==
        shardedOff.predicted.bytes.at("all_gather"));
  CHECK(shardedOn.predicted.bytes.at("reduce_scatter") ==
        2 * shardedOff.predicted.bytes.at("reduce_scatter"));
}

TEST_CASE("Memory by category counts masters, gradients and states") {
  const Graph graph = narrowGpt();
  const int64_t elements = trainedElements(graph);
  const Cluster cluster = *presetCluster("cpu:1");
  for (OptimizerKind optimizer : {OptimizerKind::AdamW, OptimizerKind::SGD})
    for (const char *masters : {"none", "float32"}) {
      INFO(toString(optimizer) << ", " << masters);
      PlanRequest request;
      request.globalRows = 2;
      request.optimizer = optimizer;
      REQUIRE_FALSE(
          addPins(std::string("micro_batch=2,master_weights=") + masters,
                  request.pins));
      Expected<PlanResult> plan = makePlan(graph, cluster, request);
      REQUIRE(plan);
      const int64_t width = plan->decisions.masterWeights ? 4 : 2;
      const int64_t states = optimizer == OptimizerKind::AdamW ? 2 : 0;
      const int64_t copies = plan->decisions.masterWeights ? 1 : 0;
      REQUIRE(plan->memory.size() == 1);
      CHECK(plan->memory[0].of(MemoryUse::Parameters) == 2 * elements);
      CHECK(plan->memory[0].of(MemoryUse::Gradients) == width * elements);
      CHECK(plan->memory[0].of(MemoryUse::Optimizer) ==
            width * (states + copies) * elements);
      CHECK(planFileOf(*plan, graph, cluster, request)
                .document["origins"]["master_weights"] == "user");
    }
}

TEST_CASE("Parameters that are frozen or wide have no master copy") {
  Graph frozen = narrowGpt();
  for (size_t p = 0; p < frozen.parameters.size(); p += 2) {
    frozen.parameters[p].trainable = false;
    frozen.parameters[p].gradients.clear();
  }
  const StrategySpace space(frozen);
  const Program program = resolved(space, onTwoReplicas(space, true));
  CHECK(findingsOf(program) == "");
  int copies = 0, without = 0;
  for (const ProgramParameter &parameter : program.roles[0].parameters) {
    CHECK((parameter.master != None) == parameter.trainable);
    ++(parameter.trainable ? copies : without);
  }
  CHECK(copies > 0);
  CHECK(without > 0);

  const Graph wide = narrowGpt(DType::Float32);
  const StrategySpace wideSpace(wide);
  const Program asked = resolved(wideSpace, onTwoReplicas(wideSpace, true));
  const Program plain = resolved(wideSpace, onTwoReplicas(wideSpace, false));
  CHECK(asked.predicted == plain.predicted);
  CHECK(asked.predictedPeakBytes == plain.predictedPeakBytes);
}

TEST_CASE("Broken master copies are found") {
  const Graph graph = narrowGpt();
  const StrategySpace space(graph);
  const Program good = resolved(space, onTwoReplicas(space, true));
  REQUIRE(findingsOf(good) == "");
  const auto broken = [&](auto breakIt) {
    Program program = good;
    breakIt(program.roles[0], program.roles[0].parameters[0]);
    return program;
  };
  const auto isCopyOf = [](const ProgramParameter &parameter) {
    return [&](const Instruction &instruction) {
      return instruction.name == "aten::copy_" &&
             instruction.operands[0] == parameter.value;
    };
  };
  CHECK(finds(broken([](Role &role, ProgramParameter &parameter) {
                role.values[parameter.master].type = DType::Float64;
              }),
              "MP2152", "is no master copy of"));
  CHECK(finds(broken([](Role &role, ProgramParameter &parameter) {
                role.values[parameter.value].type = DType::Float32;
              }),
              "MP2152", "is no master copy of"));
  CHECK(finds(broken([](Role &role, ProgramParameter &parameter) {
                role.values[parameter.master].shape = {Expr::constant(1)};
              }),
              "MP2152", "is no master copy of"));
  CHECK(finds(broken([](Role &role, ProgramParameter &parameter) {
                role.values[parameter.master].lifetime = Lifetime::Carried;
              }),
              "MP2110", "the master copy of"));
  CHECK(finds(broken([](Role &, ProgramParameter &parameter) {
                parameter.master = parameter.value;
              }),
              "MP2110", "two leaves"));
  CHECK(finds(broken([](Role &, ProgramParameter &parameter) {
                parameter.trainable = false;
              }),
              "MP2110", "where it is not trained"));
  // Nothing may update the parameter behind its copy's back.
  CHECK(finds(broken([](Role &role, ProgramParameter &parameter) {
                for (Instruction &instruction : stepOf(role))
                  if (instruction.kind == InstructionKind::Update &&
                      instruction.operands[0] == parameter.master)
                    instruction.operands[0] = parameter.value;
              }),
              "MP2151", "no parameter that this stage trains"));
  CHECK(finds(broken([](Role &role, ProgramParameter &parameter) {
                role.values[parameter.gradient].type = DType::BFloat16;
              }),
              "MP2151", "is no gradient of"));
  CHECK(finds(broken([&](Role &role, ProgramParameter &parameter) {
                std::erase_if(stepOf(role), isCopyOf(parameter));
              }),
              "MP2152", "never follows its master copy"));
  CHECK(finds(broken([&](Role &role, ProgramParameter &parameter) {
                std::erase_if(stepOf(role), [&](const Instruction &each) {
                  return each.kind == InstructionKind::Update &&
                         each.operands[0] == parameter.master;
                });
              }),
              "MP2152", "a master copy that nothing updates"));
  CHECK(finds(broken([&](Role &role, ProgramParameter &parameter) {
                auto &step = stepOf(role);
                std::find_if(step.begin(), step.end(), isCopyOf(parameter))
                    ->operands[1] = parameter.gradient;
              }),
              "MP2152", "is written by something else than its update"));
  CHECK(finds(broken([&](Role &role, ProgramParameter &parameter) {
                auto &step = stepOf(role);
                const auto copy =
                    std::find_if(step.begin(), step.end(), isCopyOf(parameter));
                Instruction read;
                read.name = "aten::equal";
                read.operands = {parameter.value, parameter.value};
                read.results = {None};
                step.insert(copy, read);
              }),
              "MP2152", "is read before it follows its master copy"));
}
