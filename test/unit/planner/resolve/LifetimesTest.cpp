// Buffers that an all-reduce takes over instead of a copy.
#include "core/registry/Lowering.h"
#include "planner/resolve/Resolver.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace monarch;
using namespace monarch::planner;

namespace {

/// x = zeros; perhaps its send; the all-reduced clone of x, which is sent.
Role reducedClone(bool isSent) {
  Role role;
  RoleWriter writer(role);
  role.segments.emplace_back().kind = SegmentKind::Forward;
  writer.target = &role.segments[0].instructions;
  const std::vector<Expr> shape = {Expr::constant(4)};
  const Local x =
      writer.call("aten::zeros", {}, {shape}, DType::Float32, shape);
  const auto send = [&](Local value) {
    Instruction instruction;
    instruction.kind = InstructionKind::Send;
    instruction.operands = {value.value};
    writer.append(std::move(instruction));
  };
  if (isSent)
    send(x);
  const Local copy =
      writer.call("aten::clone", {x}, {OperandArg{0}, Expr::constant(0)},
                  DType::Float32, shape);
  send(writer.allReduce(copy, {0}, "sum"));
  return role;
}

bool clones(const Role &role) {
  const auto &instructions = role.segments[0].instructions;
  return std::any_of(
      instructions.begin(), instructions.end(),
      [](const Instruction &each) { return each.name == "aten::clone"; });
}

} // namespace

TEST_CASE("A tensor that is still being sent is copied before it is reduced") {
  std::vector<ResolvedStep> steps;
  Role alone = reducedClone(false), sent = reducedClone(true);
  finishLifetimes(alone, steps);
  finishLifetimes(sent, steps);
  CHECK_FALSE(clones(alone));
  CHECK(clones(sent));
}
