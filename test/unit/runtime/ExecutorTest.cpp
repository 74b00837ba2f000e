//===- ExecutorTest.cpp - programs on thread ranks ------------------------===//
//
// Hand-written programs over stages, data and tensor axes against plain
// LibTorch on one tensor each.
//
//===----------------------------------------------------------------------===//
#include "runtime/Session.h"
#include "runtime/data/MemorySources.h"
#include "test/unit/runtime/Programs.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/zeros_like.h>
#include <catch2/catch.hpp>

#include <cmath>

using namespace monarch;
using namespace monarch::runtime;
using namespace monarch::test;

namespace {

/// Numbers without a pattern, in [-1, 1].
at::Tensor numbers(std::vector<int64_t> shape, double phase,
                   DType type = DType::Float64) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return at::sin(at::arange(count, at::TensorOptions(at::kDouble)) * 1.7 +
                 phase)
      .view(shape)
      .to(scalarTypeOf(type));
}

struct Reference {
  std::vector<double> losses;
  std::vector<NamedTensors> gradients;
  NamedTensors weights;
};

struct Case {
  TwoLayers shape;
  SessionOptions options;
  NamedTensors weights, batches;
};

Case caseOf(TwoLayers shape, int64_t steps) {
  Case c{shape, {}, {}, {}};
  c.options.steps = steps;
  c.options.optimizer.learningRate = 0.05;
  c.weights = {{"w1", numbers({shape.inner, shape.hidden}, 0.3, shape.type)},
               {"w2", numbers({shape.hidden, shape.outer}, 0.9, shape.type)}};
  int64_t rows = shape.unitRows * shape.unitsPerReplica * shape.data * steps;
  c.batches = {{"x", numbers({rows, shape.inner}, 0.1, shape.type)}};
  return c;
}

/// torch.optim's formulas, spelled out.
Reference reference(const Case &c) {
  Reference result;
  at::Tensor w1 = c.weights.at("w1").clone(), w2 = c.weights.at("w2").clone();
  std::vector<at::Tensor> mean = {at::zeros_like(w1), at::zeros_like(w2)};
  std::vector<at::Tensor> square = {at::zeros_like(w1), at::zeros_like(w2)};
  const OptimizerSettings &settings = c.options.optimizer;
  int64_t rows = c.batches.at("x").size(0) / c.options.steps;
  for (int64_t step = 0; step < c.options.steps; ++step) {
    at::Tensor x = c.batches.at("x").narrow(0, step * rows, rows);
    at::Tensor h = at::mm(x, w1);
    at::Tensor y = at::mm(h, w2);
    result.losses.push_back(0.5 * (y * y).sum().item().toDouble());
    std::vector<at::Tensor> gradients = {at::mm(x.t(), at::mm(y, w2.t())),
                                         at::mm(h.t(), y)};
    result.gradients.push_back({{"w1", gradients[0]}, {"w2", gradients[1]}});
    double scale = 1;
    if (settings.clipNorm > 0) {
      double norm =
          std::sqrt((gradients[0].square().sum() + gradients[1].square().sum())
                        .item()
                        .toDouble());
      scale = std::min(1.0, settings.clipNorm / (norm + 1e-6));
    }
    std::vector<at::Tensor> weights = {w1, w2};
    for (int i = 0; i < 2; ++i) {
      at::Tensor g = gradients[i] * scale;
      if (c.shape.optimizer == OptimizerKind::SGD) {
        weights[i].sub_(settings.learningRate *
                        (g + settings.weightDecay * weights[i]));
        continue;
      }
      weights[i].mul_(1 - settings.learningRate * settings.weightDecay);
      mean[i] = 0.9 * mean[i] + 0.1 * g;
      square[i] = 0.999 * square[i] + 0.001 * g * g;
      double t = static_cast<double>(step + 1);
      weights[i].sub_(settings.learningRate *
                      (mean[i] / (1 - std::pow(0.9, t))) /
                      ((square[i] / (1 - std::pow(0.999, t))).sqrt() + 1e-8));
    }
  }
  result.weights = {{"w1", w1}, {"w2", w2}};
  return result;
}

double errorOf(const at::Tensor &actual, const at::Tensor &expected) {
  return ((actual - expected).abs().max() / expected.abs().max())
      .item()
      .toDouble();
}

Expected<SessionResult> run(const Case &c, const Program &program) {
  MemoryWeights weights(c.weights);
  MemoryBatches batches(c.batches);
  return runThreads(program, weights, batches, c.options);
}

void checkEqual(const Case &c) {
  Program program = twoLayerProgram(c.shape);
  auto result = run(c, program);
  REQUIRE((result ? "" : toString(result.error())) == "");
  Reference expected = reference(c);
  double tolerance = c.shape.type == DType::Float64 ? 1e-12 : 1e-5;
  REQUIRE(result->losses.size() == expected.losses.size());
  for (size_t step = 0; step < expected.losses.size(); ++step) {
    CHECK(result->losses[step] ==
          Approx(expected.losses[step]).epsilon(tolerance));
    for (const char *name : {"w1", "w2"})
      CHECK(errorOf(result->gradients[step].at(name),
                    expected.gradients[step].at(name)) < tolerance);
  }
  for (const char *name : {"w1", "w2"})
    CHECK(errorOf(result->weights.at(name), expected.weights.at(name)) <
          tolerance);
}

} // namespace

TEST_CASE("One rank trains as plain LibTorch does") {
  TwoLayers shape;
  shape.unitsPerReplica = 3;
  SECTION("SGD") {}
  SECTION("AdamW") { shape.optimizer = OptimizerKind::AdamW; }
  SECTION("float32") { shape.type = DType::Float32; }
  checkEqual(caseOf(shape, 3));
}

TEST_CASE("Decay and clipping follow torch") {
  TwoLayers shape;
  shape.optimizer = GENERATE(OptimizerKind::SGD, OptimizerKind::AdamW);
  shape.stages = 2;
  shape.tensor = 2;
  Case c = caseOf(shape, 3);
  c.options.optimizer.weightDecay = 0.1;
  c.options.optimizer.clipNorm = GENERATE(0.0, 0.5, 1e9);
  checkEqual(c);
}

TEST_CASE("Stages, data and tensor axes give the numbers of one process") {
  TwoLayers shape;
  shape.stages = GENERATE(1, 2);
  shape.data = GENERATE(1, 2, 3);
  shape.tensor = GENERATE(1, 2);
  shape.sharded = shape.data > 1 && GENERATE(false, true);
  shape.unitsPerReplica = 4;
  checkEqual(caseOf(shape, 2));
}

TEST_CASE("Blocks may be empty") {
  TwoLayers shape;
  shape.data = 3;
  shape.tensor = 5;
  shape.inner = 2;
  shape.hidden = 3;
  shape.sharded = true;
  checkEqual(caseOf(shape, 2));
}

TEST_CASE("Executed traffic is counted on each rank") {
  TwoLayers shape;
  shape.stages = 2;
  shape.tensor = 2;
  shape.hidden = 6;
  shape.unitsPerReplica = 3;
  Case c = caseOf(shape, 1);
  auto result = run(c, twoLayerProgram(shape));
  REQUIRE(result);
  // Stage 0: h of 3 units, 3 x 3 doubles each, and its norm; no all-reduce but
  // that of the norm. Stage 1: an all-reduce of y for each unit.
  CHECK(result->ranks[0][0].traffic.bytes.at("send") == 3 * 9 * 8 + 8);
  CHECK(result->ranks[0][0].traffic.collectives.at("send") == 4);
  CHECK(result->ranks[0][0].traffic.bytes.at("all_reduce") == 8);
  CHECK(result->ranks[3][0].traffic.bytes.at("all_reduce") ==
        3 * 3 * 4 * 8 + 8);
  CHECK(result->ranks[3][0].traffic.collectives.at("all_reduce") == 4);
}

TEST_CASE("Reruns give equal bits") {
  TwoLayers shape;
  shape.data = 2;
  shape.tensor = 3;
  shape.type = DType::Float32;
  Case c = caseOf(shape, 2);
  Program program = twoLayerProgram(shape);
  auto first = run(c, program), second = run(c, program);
  REQUIRE(first);
  REQUIRE(second);
  CHECK(first->losses == second->losses);
  CHECK(first->weights.at("w1").equal(second->weights.at("w1")));
}

TEST_CASE("A result of another shape is an error that names the instruction") {
  TwoLayers shape;
  shape.tensor = 2;
  Case c = caseOf(shape, 1);
  Program program = twoLayerProgram(shape);
  for (ProgramValue &value : program.roles[0].values)
    if (value.name == "y")
      value.shape[1] = Expr::constant(9);
  auto result = run(c, program);
  REQUIRE(!result);
  CHECK(result.error().id == "MP4003");
  CHECK(result.error().code == ExitCode::Internal);
  CHECK(result.error().what.find("'y' is Double [3, 4]") != std::string::npos);
  CHECK(result.error().where.find("step 1, forward of unit 0, aten::mm") !=
        std::string::npos);
}

TEST_CASE("Aliases are what the program says") {
  TwoLayers shape;
  Case c = caseOf(shape, 1);
  Program program = twoLayerProgram(shape);
  SECTION("a view that is declared its own is copied") {
    for (ProgramValue &value : program.roles[0].values)
      value.aliasOf = None;
    CHECK(run(c, program));
  }
  SECTION("an own result that is declared a view is refused") {
    for (size_t id = 0; id < program.roles[0].values.size(); ++id)
      if (program.roles[0].values[id].name == "h")
        program.roles[0].values[id].aliasOf = program.roles[0].inputs[0].value;
    auto result = run(c, program);
    REQUIRE(!result);
    CHECK(result.error().what.find("does not share") != std::string::npos);
  }
}

TEST_CASE("A call that fails ends all ranks with its message") {
  TwoLayers shape;
  shape.tensor = 2;
  Case c = caseOf(shape, 1);
  Program program = twoLayerProgram(shape);
  std::string &name = program.roles[0].segments[0].instructions[0].name;
  SECTION("unknown to LibTorch") {
    name = "aten::no_such_op";
    auto result = run(c, program);
    REQUIRE(!result);
    CHECK(result.error().id == "MP4004");
  }
  SECTION("refused by its kernel") {
    name = "aten::dot";
    auto result = run(c, program);
    REQUIRE(!result);
    CHECK(result.error().id == "MP4002");
    CHECK(result.error().code == ExitCode::RunFailed);
    CHECK(result.error().where.find("aten::dot") != std::string::npos);
  }
}

TEST_CASE("Weights and batches that do not fit are named") {
  TwoLayers shape;
  Case c = caseOf(shape, 1);
  Program program = twoLayerProgram(shape);
  SECTION("missing weight") {
    c.weights.erase("w2");
    CHECK(run(c, program).error().where == "w2");
  }
  SECTION("weight of another shape") {
    c.weights["w2"] = numbers({2, 2}, 0);
    CHECK(run(c, program).error().id == "MP4010");
  }
  SECTION("weight of another type") {
    c.weights["w2"] = c.weights["w2"].to(at::kFloat);
    CHECK(run(c, program).error().id == "MP4010");
  }
  SECTION("too few rows") {
    c.options.steps = 2;
    CHECK(run(c, program).error().id == "MP4011");
  }
}
