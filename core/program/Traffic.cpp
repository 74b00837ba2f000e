//===- Traffic.cpp --------------------------------------------------------===//
//
// See Traffic.h. An instruction sends the same in each run of its segment, so
// each is evaluated once and counted as often as the schedule runs it.
//
//===----------------------------------------------------------------------===//
#include "core/program/Traffic.h"

#include "core/layout/Reshard.h"
#include "core/program/Verify.h"

namespace monarch {

std::optional<int64_t> bytesSent(const Instruction &instruction,
                                 const StageSizes &sizes, int64_t rank) {
  if (instruction.kind == InstructionKind::Send)
    return sizes.bytes(instruction.operands[0], rank);
  switch (instruction.kind) {
  case InstructionKind::AllReduce:
  case InstructionKind::AllGather:
  case InstructionKind::ReduceScatter:
  case InstructionKind::AllToAll:
    break;
  default:
    return std::nullopt;
  }
  const GroupMembers &group = sizes.groups(instruction.axes)[rank];
  int64_t members = static_cast<int64_t>(group.ranks.size());
  if (members == 1)
    return std::nullopt;
  int64_t operandBytes = sizes.bytes(instruction.operands[0], rank);
  if (instruction.kind == InstructionKind::AllReduce)
    return allReduceBytes(operandBytes, members);
  if (instruction.kind == InstructionKind::AllGather)
    return allGatherBytes(operandBytes, members);
  std::vector<int64_t> sent;
  int64_t width = byteWidth(sizes.role().values[instruction.operands[0]].type);
  for (const Expr &size : instruction.sendSizes)
    sent.push_back(multiplySizes(sizes.evaluate(size, rank), width));
  return exchangeBytes(sent, group.own);
}

Traffic trafficOf(const StageSizes &sizes, int64_t rank) {
  std::map<SegmentKind, int64_t> runs;
  for (const Slot &slot : sizes.role().schedule)
    ++runs[slot.segment];
  Traffic traffic;
  for (const Segment &segment : sizes.role().segments) {
    int64_t times = runs[segment.kind];
    if (times == 0)
      continue;
    for (const Instruction &instruction : segment.instructions)
      if (auto bytes = bytesSent(instruction, sizes, rank)) {
        std::string kind(toString(instruction.kind));
        traffic.bytes[kind] += *bytes * times;
        traffic.collectives[kind] += times;
      }
  }
  return traffic;
}

Traffic trafficOf(const Program &program, int64_t rank) {
  int64_t stageRanks = program.mesh.size();
  StageSizes sizes(program, program.roles[rank / stageRanks]);
  return trafficOf(sizes, rank % stageRanks);
}

} // namespace monarch
