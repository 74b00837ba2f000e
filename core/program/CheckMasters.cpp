//===- CheckMasters.cpp - parameters follow their master copies -----------===//
//
// Where the optimizer updates a float32 copy, the parameter is that copy's
// rounding whenever something reads it, and nothing else writes either.
//
//===----------------------------------------------------------------------===//
#include "core/program/Checks.h"

#include <fmt/format.h>

namespace monarch {

namespace {

class MasterChecker {
public:
  MasterChecker(const StageSizes &sizes, Findings &findings)
      : sizes(sizes), role(sizes.role()), findings(findings),
        pairOf(role.values.size(), None) {}

  void run() {
    for (const ProgramParameter &parameter : role.parameters)
      if (parameter.master != None) {
        checkTypes(parameter);
        pairOf[parameter.value] = pairOf[parameter.master] =
            static_cast<int32_t>(pairs.size());
        pairs.push_back({parameter.value, parameter.master});
      }
    if (pairs.empty())
      return;
    for (const Segment &segment : role.segments)
      for (size_t i = 0; i < segment.instructions.size(); ++i)
        follow(segment, i);
    for (const Pair &pair : pairs)
      if (!pair.isUpdated || pair.isBehind)
        findings.add("MP2152",
                     fmt::format("value {} {}", nameOf(role, pair.parameter),
                                 pair.isUpdated
                                     ? "never follows its master copy"
                                     : "has a master copy that nothing "
                                       "updates"),
                     fmt::format("stage {}", role.stage));
  }

private:
  struct Pair {
    int32_t parameter, master;
    bool isUpdated = false;
    /// The master is updated, the parameter not yet.
    bool isBehind = false;
  };

  void checkTypes(const ProgramParameter &parameter) {
    const ProgramValue &narrow = role.values[parameter.value];
    const ProgramValue &wide = role.values[parameter.master];
    bool fits = mayHaveMaster(narrow.type) && wide.type == DType::Float32;
    for (int64_t rank : sizes.classes())
      fits = fits && sizes.tensor(parameter.value, rank).shape ==
                         sizes.tensor(parameter.master, rank).shape;
    if (!fits)
      findings.add(
          "MP2152",
          fmt::format("{} value {} is no master copy of {} value {}",
                      toString(wide.type), nameOf(role, parameter.master),
                      toString(narrow.type), nameOf(role, parameter.value)),
          fmt::format("stage {}", role.stage));
  }

  void follow(const Segment &segment, size_t index) {
    const Instruction &instruction = segment.instructions[index];
    if (instruction.kind == InstructionKind::Free)
      return;
    auto fail = [&](int32_t value, const char *what) {
      findings.add("MP2152",
                   fmt::format("value {} {}", nameOf(role, value), what),
                   placeOf(role, segment, index));
    };
    for (size_t k = 0; k < instruction.operands.size(); ++k) {
      int32_t value = rootOf(role, instruction.operands[k]);
      if (pairOf[value] == None)
        continue;
      Pair &pair = pairs[pairOf[value]];
      if (k == 0 && instruction.kind == InstructionKind::Update) {
        pair.isUpdated = pair.isBehind = true;
      } else if (k == 0 && isInPlace(instruction)) {
        // The one write that a parameter with a master copy sees.
        if (instruction.name != "aten::copy_" ||
            instruction.operands != std::vector{pair.parameter, pair.master})
          return fail(value, "is written by something else than its update");
        pair.isBehind = false;
        return;
      } else if (value == pair.parameter && pair.isBehind) {
        fail(value, "is read before it follows its master copy");
      }
    }
  }

  const StageSizes &sizes;
  const Role &role;
  Findings &findings;
  /// Per value: the pair that it belongs to, or None.
  std::vector<int32_t> pairOf;
  std::vector<Pair> pairs;
};

} // namespace

void checkMasters(const StageSizes &sizes, Findings &findings) {
  MasterChecker(sizes, findings).run();
}

} // namespace monarch
