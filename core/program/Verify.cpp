//===- Verify.cpp - the verifier's driver ---------------------------------===//
//
// All ranks of a stage run one instruction stream over one schedule, so kinds,
// axes, reductions, types and the order of collectives agree by construction;
// what differs between ranks are sizes, and those are checked at every rank.
//
//===----------------------------------------------------------------------===//
#include "core/program/Verify.h"

#include "core/program/Checks.h"
#include "core/program/Memory.h"
#include "core/program/Traffic.h"

#include <fmt/format.h>

namespace monarch {

namespace {

/// More than this says nothing new, and hostile files stay cheap.
constexpr size_t MaxFindings = 100;

} // namespace

void Findings::add(std::string_view id, std::string what, std::string where) {
  if (errors.size() < MaxFindings)
    errors.push_back({std::string(id), ExitCode::BadInput, std::move(what),
                      std::move(where), "compile the plan again"});
}

std::string placeOf(const Role &role, const Segment &segment, size_t index) {
  std::string place =
      fmt::format("stage {}, {}", role.stage, toString(segment.kind));
  if (index >= segment.instructions.size())
    return place;
  const Instruction &instruction = segment.instructions[index];
  place += fmt::format("[{}] {}", index,
                       instruction.kind == InstructionKind::Call
                           ? std::string_view(instruction.name)
                           : toString(instruction.kind));
  if (instruction.op != None)
    place += ", " + textOfOp(role, instruction.op);
  return place;
}

std::string nameOf(const Role &role, int32_t value) {
  return fmt::format("{} '{}'", value, role.values[value].name);
}

bool isCollective(InstructionKind kind) {
  return kind == InstructionKind::AllReduce ||
         kind == InstructionKind::AllGather ||
         kind == InstructionKind::ReduceScatter ||
         kind == InstructionKind::AllToAll;
}

bool isInPlace(const Instruction &instruction) {
  if (instruction.kind != InstructionKind::Call)
    return false;
  std::string_view base(instruction.name);
  base = base.substr(0, base.find('.'));
  return base.ends_with('_');
}

int32_t rootOf(const Role &role, int32_t value) {
  while (role.values[value].aliasOf != None)
    value = role.values[value].aliasOf;
  return value;
}

const Segment *segmentOf(const Role &role, SegmentKind kind) {
  for (const Segment &segment : role.segments)
    if (segment.kind == kind)
      return &segment;
  return nullptr;
}

void checkPredictions(const Program &program,
                      const std::vector<StageSizes> &sizes,
                      Findings &findings) {
  Traffic traffic;
  for (const StageSizes &stage : sizes) {
    for (int64_t rank = 0; rank < stage.ranks(); ++rank) {
      Traffic sent = trafficOf(stage, rank);
      for (const auto &[kind, count] : sent.bytes)
        traffic.bytes[kind] += count;
      for (const auto &[kind, count] : sent.collectives)
        traffic.collectives[kind] += count;
    }
    std::vector<int64_t> peaks =
        peakBytesOf(stage, program.optimizer, stage.classes());
    for (size_t i = 0; i < peaks.size(); ++i)
      if (peaks[i] > program.predictedPeakBytes)
        findings.add("MP2161",
                     fmt::format("{} bytes of tensors, {} are predicted",
                                 peaks[i], program.predictedPeakBytes),
                     fmt::format("stage {}, rank {}", stage.role().stage,
                                 stage.classes()[i]));
  }
  auto compare = [&](const char *what, std::map<std::string, int64_t> counted,
                     std::map<std::string, int64_t> predicted) {
    for (const auto &[kind, count] : predicted)
      counted.try_emplace(kind, 0);
    for (const auto &[kind, count] : counted)
      if (count != predicted[kind])
        findings.add("MP2160",
                     fmt::format("{} {} of {}, {} are predicted", count, what,
                                 kind, predicted[kind]),
                     "manifest");
  };
  compare("bytes", traffic.bytes, program.predicted.bytes);
  compare("collectives", traffic.collectives, program.predicted.collectives);
}

std::vector<Error> verify(const Program &program) {
  Findings findings;
  checkStructure(program, findings);
  if (!findings.empty())
    return findings.take();
  std::vector<StageSizes> sizes;
  for (const Role &role : program.roles)
    sizes.emplace_back(program, role);
  for (const StageSizes &stage : sizes)
    checkSizes(program, stage, findings);
  if (!findings.empty())
    return findings.take();
  for (const StageSizes &stage : sizes) {
    checkLifetimes(stage.role(), findings);
    checkSchedule(program, stage.role(), findings);
    checkCollectives(stage, findings);
    checkShapes(stage, findings);
    checkMasters(stage, findings);
  }
  checkTransfers(program, sizes, findings);
  // A broken program has no traffic or peak worth the name.
  if (findings.empty())
    checkPredictions(program, sizes, findings);
  return findings.take();
}

} // namespace monarch
