//===- ProgramBuilder.h - small programs by hand --------------------------===//
//
// Writes instructions without checking anything, so that tests can break what a
// RoleWriter would refuse to write; and a sample program that uses every kind
// of instruction, lifetime and segment.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/program/Program.h"

namespace monarch::test {

class RoleBuilder {
public:
  explicit RoleBuilder(Role &role);

  /// Where the next instructions go.
  void in(SegmentKind segment) { current = segment; }

  ShardRef shard(const Shard &shard);
  int32_t value(const std::string &name, std::vector<Expr> shape,
                Lifetime lifetime = Lifetime::Local,
                DType type = DType::Float32, int32_t aliasOf = None);
  /// A call with all operands as its first arguments and one result.
  int32_t call(const std::string &name, std::vector<int32_t> operands,
               int32_t result, std::vector<CallArg> more = {});
  /// In place: no result.
  void callInPlace(const std::string &name, std::vector<int32_t> operands,
                   std::vector<CallArg> more = {});
  Instruction &add(InstructionKind kind, std::vector<int32_t> operands,
                   std::vector<int32_t> results, std::vector<int> axes = {});
  void free(std::vector<int32_t> values);

  Role &role;

private:
  SegmentKind current = SegmentKind::Forward;
};

/// y = relu(x W0) W1, loss = sum(y) / count, over two stages of two ranks each
/// (axis "tp"), two units; W0 [4, 5] split by columns, W1 [5, 4] by rows,
/// unevenly. Stage 0 also gathers, scatters and exchanges its activation.
/// Traffic and peak are not filled.
Program sampleProgram();

/// Values by name, in a role.
int32_t valueNamed(const Role &role, const std::string &name);
/// The n-th instruction of a kind in a segment.
Instruction &instructionOf(Role &role, SegmentKind segment,
                           InstructionKind kind, int n = 0);

} // namespace monarch::test
