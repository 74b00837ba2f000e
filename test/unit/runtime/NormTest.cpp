// The norm of all gradients, to clip by.
#include "core/program/Verify.h"
#include "planner/resolve/Resolve.h"
#include "runtime/Session.h"
#include "runtime/data/MemorySources.h"
#include "runtime/support/Tensors.h"
#include "test/support/GraphBuilder.h"

#include <ATen/ops/full.h>
#include <catch2/catch.hpp>

using namespace monarch;
using namespace monarch::runtime;

namespace {

/// sum(x w) in a type: the gradient of w is x.
Graph product(DType type) {
  test::GraphBuilder builder;
  const ValueId x = builder.input("x", {4, 6}, type);
  const ValueId w = builder.parameter("w", {4, 6}, type);
  const ValueId y = builder.op("aten::mul.Tensor", {x, w},
                               {OperandArg{0}, OperandArg{1}}, {4, 6}, type);
  const ValueId loss =
      builder.op("aten::sum", {y}, {OperandArg{0}, std::monostate()}, {}, type);
  builder.graph.loss = loss;
  builder.graph.outputs = {loss};
  builder.graph.unitRows = 4;
  const ValueId seed = builder.seed(type);
  builder.cotangent(seed, {loss});
  builder.backwardOf(loss);
  const ValueId ofY =
      builder.op("aten::expand", {seed}, {OperandArg{0}, ResultSizes{0}, false},
                 {4, 6}, type);
  builder.cotangent(ofY, {y});
  builder.backwardOf(y);
  const ValueId ofW = builder.op("aten::mul.Tensor", {ofY, x},
                                 {OperandArg{0}, OperandArg{1}}, {4, 6}, type);
  builder.cotangent(ofW, {w});
  return builder.finish();
}

} // namespace

TEST_CASE("Squares of narrow gradients are summed in float32") {
  // 300 squared is no float16; 1 + 1/64 squared is no bfloat16.
  const auto [type, entry] = GENERATE(table<DType, double>(
      {{DType::Float16, 300.0}, {DType::BFloat16, 1.015625}}));
  const Graph graph = product(type);
  const StrategySpace space(graph);
  const auto resolved =
      planner::resolve(space, planner::oneProcess(graph, space, 4));
  REQUIRE(resolved);
  const Program &program = resolved->program;
  const auto errors = verify(program);
  INFO((errors.empty() ? "" : toString(errors.front())));
  REQUIRE(errors.empty());
  const auto options = at::dtype(scalarTypeOf(type));
  MemoryWeights weights({{"w", at::full({4, 6}, 0, options)}});
  MemoryBatches batches({{"x", at::full({4, 6}, entry, options)}});
  double squaredNorm = 0;
  SessionOptions session;
  session.onInstruction = [&](int64_t, const InstructionPlace &place,
                              const std::vector<at::Tensor> &values) {
    const at::Tensor &norm = values[program.roles[0].scalars.squaredNorm];
    if (place.segment == SegmentKind::Step && norm.defined())
      squaredNorm = norm.item().toDouble();
  };
  const auto result = runThreads(program, weights, batches, session);
  INFO((result ? "" : toString(result.error())));
  REQUIRE(result);
  CHECK(squaredNorm == Approx(24 * entry * entry).epsilon(1e-6));
}
