//===- ProgramBuilder.cpp -------------------------------------------------===//
//
// See ProgramBuilder.h.
//
//===----------------------------------------------------------------------===//
#include "test/support/ProgramBuilder.h"

#include <algorithm>
#include <cassert>

namespace monarch::test {

RoleBuilder::RoleBuilder(Role &role) : role(role) {
  for (int kind = 0; kind <= static_cast<int>(SegmentKind::Step); ++kind)
    role.segments.push_back({static_cast<SegmentKind>(kind), {}});
}

ShardRef RoleBuilder::shard(const Shard &shard) {
  role.shards.push_back(shard);
  return {static_cast<int>(role.shards.size()) - 1};
}

int32_t RoleBuilder::value(const std::string &name, std::vector<Expr> shape,
                           Lifetime lifetime, DType type, int32_t aliasOf) {
  role.values.push_back({type, std::move(shape), lifetime, aliasOf, name});
  return static_cast<int32_t>(role.values.size()) - 1;
}

Instruction &RoleBuilder::add(InstructionKind kind,
                              std::vector<int32_t> operands,
                              std::vector<int32_t> results,
                              std::vector<int> axes) {
  Instruction instruction;
  instruction.kind = kind;
  instruction.operands = std::move(operands);
  instruction.results = std::move(results);
  instruction.axes = std::move(axes);
  auto &list = role.segments[static_cast<size_t>(current)].instructions;
  list.push_back(std::move(instruction));
  return list.back();
}

int32_t RoleBuilder::call(const std::string &name,
                          std::vector<int32_t> operands, int32_t result,
                          std::vector<CallArg> more) {
  std::vector<CallArg> args;
  for (size_t i = 0; i < operands.size(); ++i)
    args.push_back(OperandArg{static_cast<int>(i)});
  args.insert(args.end(), more.begin(), more.end());
  Instruction &instruction =
      add(InstructionKind::Call, std::move(operands), {result});
  instruction.name = name;
  instruction.args = std::move(args);
  return result;
}

void RoleBuilder::callInPlace(const std::string &name,
                              std::vector<int32_t> operands,
                              std::vector<CallArg> more) {
  call(name, std::move(operands), None, std::move(more));
}

void RoleBuilder::free(std::vector<int32_t> values) {
  add(InstructionKind::Free, std::move(values), {});
}

int32_t valueNamed(const Role &role, const std::string &name) {
  for (size_t i = 0; i < role.values.size(); ++i)
    if (role.values[i].name == name)
      return static_cast<int32_t>(i);
  assert(false && "no value of this name");
  return None;
}

Instruction &instructionOf(Role &role, SegmentKind segment,
                           InstructionKind kind, int n) {
  for (Instruction &instruction :
       role.segments[static_cast<size_t>(segment)].instructions)
    if (instruction.kind == kind && n-- == 0)
      return instruction;
  assert(false && "no such instruction");
  return role.segments[0].instructions[0];
}

} // namespace monarch::test
