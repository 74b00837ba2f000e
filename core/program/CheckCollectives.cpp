//===- CheckCollectives.cpp - members of a group agree on sizes -----------===//
//
// At each rank the buffers have the sizes that the instruction declares, and
// what a member sends to another is what that one expects from it. An
// instruction is reported once, at the first rank where it fails.
//
//===----------------------------------------------------------------------===//
#include "core/program/Checks.h"

#include <fmt/format.h>

namespace monarch {

namespace {

class CollectiveChecker {
public:
  CollectiveChecker(const StageSizes &sizes, Findings &findings)
      : sizes(sizes), role(sizes.role()), findings(findings) {}

  void run() {
    for (const Segment &segment : role.segments)
      for (size_t i = 0; i < segment.instructions.size(); ++i) {
        const Instruction &instruction = segment.instructions[i];
        std::string problem, id = "MP2140";
        if (isCollective(instruction.kind)) {
          problem = problemOf(instruction);
          if (problem.empty()) {
            id = "MP2142";
            problem = typeProblemOf(instruction);
          }
        } else if (instruction.kind == InstructionKind::Update) {
          id = "MP2151";
          problem = updateProblemOf(instruction);
        }
        if (!problem.empty())
          findings.add(id, problem, placeOf(role, segment, i));
      }
  }

private:
  struct Sizes {
    std::vector<int64_t> send, receive;
    int64_t operand = 0, result = 0;
  };

  std::string problemOf(const Instruction &instruction) {
    std::vector<Sizes> all;
    for (int64_t rank = 0; rank < sizes.ranks(); ++rank) {
      Sizes own{sizes.evaluate(instruction.sendSizes, rank),
                sizes.evaluate(instruction.receiveSizes, rank),
                sizes.elements(instruction.operands[0], rank), 0};
      if (!instruction.results.empty())
        own.result = sizes.elements(instruction.results[0], rank);
      for (const auto *list : {&own.send, &own.receive})
        for (int64_t size : *list)
          if (size < 0)
            return fmt::format("a block of {} elements at rank {}", size, rank);
      all.push_back(std::move(own));
    }
    const std::vector<GroupMembers> &members = sizes.groups(instruction.axes);
    for (int64_t rank = 0; rank < sizes.ranks(); ++rank) {
      std::string problem =
          bufferProblem(instruction.kind, all[rank], members[rank].own);
      if (!problem.empty())
        return fmt::format("rank {}: {}", rank, problem);
      // Pairs are symmetric: each is seen from its first member.
      for (size_t i = 0; i < members[rank].ranks.size(); ++i) {
        int64_t peer = members[rank].ranks[i];
        problem = pairProblem(instruction.kind, all[rank], members[rank].own,
                              all[peer], static_cast<int64_t>(i));
        if (!problem.empty())
          return fmt::format("ranks {} and {}: {}", rank, peer, problem);
      }
    }
    return "";
  }

  static int64_t sum(const std::vector<int64_t> &list) {
    int64_t total = 0;
    for (int64_t size : list)
      total = addSizes(total, size);
    return total;
  }

  static std::string bufferProblem(InstructionKind kind, const Sizes &own,
                                   int64_t place) {
    auto differ = [](const char *what, int64_t has, int64_t declared) {
      return has == declared
                 ? std::string()
                 : fmt::format("the {} has {} elements, its blocks {}", what,
                               has, declared);
    };
    std::string problem;
    switch (kind) {
    case InstructionKind::AllGather:
      problem = differ("operand", own.operand, own.receive[place]);
      return problem.empty() ? differ("result", own.result, sum(own.receive))
                             : problem;
    case InstructionKind::ReduceScatter:
      problem = differ("operand", own.operand, sum(own.send));
      return problem.empty() ? differ("result", own.result, own.send[place])
                             : problem;
    case InstructionKind::AllToAll:
      problem = differ("operand", own.operand, sum(own.send));
      return problem.empty() ? differ("result", own.result, sum(own.receive))
                             : problem;
    default:
      return "";
    }
  }

  static std::string pairProblem(InstructionKind kind, const Sizes &own,
                                 int64_t place, const Sizes &peer,
                                 int64_t peerPlace) {
    auto differ = [](const char *what, int64_t a, int64_t b) {
      return a == b ? std::string() : fmt::format("{} {} and {}", what, a, b);
    };
    switch (kind) {
    case InstructionKind::AllReduce:
      return differ("elements to reduce", own.operand, peer.operand);
    case InstructionKind::AllGather:
      return differ("a block expected and sent of", own.receive[peerPlace],
                    peer.operand);
    case InstructionKind::ReduceScatter:
      return differ("a block sent and kept of", own.send[peerPlace],
                    peer.send[peerPlace]);
    case InstructionKind::AllToAll:
      return differ("a block sent and expected of", own.send[peerPlace],
                    peer.receive[place]);
    default:
      return "";
    }
  }

  std::string typeProblemOf(const Instruction &instruction) const {
    DType type = role.values[instruction.operands[0]].type;
    for (int32_t id : instruction.results)
      if (role.values[id].type != type)
        return fmt::format("{} in, {} out", toString(type),
                           toString(role.values[id].type));
    bool reduces = instruction.kind == InstructionKind::AllReduce ||
                   instruction.kind == InstructionKind::ReduceScatter;
    if (reduces && type == DType::Bool)
      return "bool has no sum";
    return "";
  }

  std::string updateProblemOf(const Instruction &instruction) const {
    int32_t parameter = instruction.operands[0];
    int32_t gradient = instruction.operands[1];
    bool known = false;
    for (const ProgramParameter &entry : role.parameters)
      known = known || (updatedValue(entry) == parameter && entry.trainable &&
                        entry.owner);
    if (!known)
      return fmt::format("value {} is no parameter that this stage trains",
                         nameOf(role, parameter));
    for (int64_t rank = 0; rank < sizes.ranks(); ++rank) {
      TensorType updated = sizes.tensor(parameter, rank);
      TensorType by = sizes.tensor(gradient, rank);
      if (updated.type != by.type || updated.shape != by.shape)
        return fmt::format("value {} is no gradient of {} at rank {}",
                           nameOf(role, gradient), nameOf(role, parameter),
                           rank);
    }
    return "";
  }

  const StageSizes &sizes;
  const Role &role;
  Findings &findings;
};

} // namespace

void checkCollectives(const StageSizes &sizes, Findings &findings) {
  CollectiveChecker(sizes, findings).run();
}

} // namespace monarch
