//===- CheckLifetimes.cpp - values live where they are used ---------------===//
//
// Units repeat, so each segment is walked once, in the order in which segments
// run: what Count, Begin and Forward leave behind is what later ones find.
// Saved values pass from the Forward to the Backward of one unit, carried ones
// from anywhere to the end of the step.
//
//===----------------------------------------------------------------------===//
#include "core/program/Checks.h"

#include <algorithm>
#include <fmt/format.h>

namespace monarch {

namespace {

class LifetimeChecker {
public:
  LifetimeChecker(const Role &role, Findings &findings)
      : role(role), findings(findings),
        states(role.values.size(), State::Undefined),
        isInput(role.values.size(), false) {
    auto live = [&](int32_t id) {
      if (id != None)
        states[id] = State::Live;
    };
    for (const ProgramParameter &parameter : role.parameters) {
      live(parameter.value);
      live(parameter.master);
    }
    for (const ProgramBuffer &buffer : role.buffers)
      live(buffer.value);
    for (const ProgramIndex &index : role.indices)
      live(index.value);
    for (int32_t id : role.zeroed)
      live(id);
    live(role.scalars.random);
    live(role.scalars.seed);
    for (const ProgramInput &input : role.inputs)
      isInput[input.value] = true;
  }

  void run() {
    for (const Segment &segment : role.segments) {
      current = &segment;
      runSegment();
    }
    current = nullptr;
    for (int32_t id : {role.scalars.loss, role.scalars.squaredNorm})
      if (id != None && states[id] != State::Live)
        findings.add("MP2120",
                     fmt::format("value {} is reported and never computed",
                                 nameOf(role, id)),
                     fmt::format("stage {}", role.stage));
    for (const ProgramParameter &parameter : role.parameters)
      if (parameter.gradient != None &&
          role.values[parameter.gradient].lifetime == Lifetime::Carried &&
          states[parameter.gradient] != State::Live)
        findings.add("MP2120",
                     fmt::format("gradient {} is never computed",
                                 nameOf(role, parameter.gradient)),
                     fmt::format("stage {}", role.stage));
  }

private:
  enum class State : uint8_t { Undefined, Live, Freed };

  void runSegment() {
    sent.clear();
    fillInputs();
    const auto &instructions = current->instructions;
    for (index = 0; index < instructions.size(); ++index)
      runInstruction(instructions[index]);
    // Names of what should have ended, and a fresh start of what is local.
    for (size_t id = 0; id < role.values.size(); ++id) {
      Lifetime lifetime = role.values[id].lifetime;
      bool ends = lifetime == Lifetime::Local ||
                  (lifetime == Lifetime::Saved &&
                   current->kind != SegmentKind::Forward) ||
                  (lifetime == Lifetime::Saved &&
                   !segmentOf(role, SegmentKind::Backward));
      if (ends && states[id] == State::Live)
        fail("MP2123", static_cast<int32_t>(id), "is never freed");
      if (lifetime == Lifetime::Local)
        states[id] = State::Undefined;
    }
  }

  /// The runtime reads an input for each segment that names it.
  void fillInputs() {
    if (current->kind == SegmentKind::Begin ||
        current->kind == SegmentKind::Step)
      return;
    for (const Instruction &instruction : current->instructions)
      for (int32_t id : instruction.operands)
        if (isInput[id])
          states[id] = State::Live;
  }

  void runInstruction(const Instruction &instruction) {
    if (instruction.kind == InstructionKind::Free) {
      for (int32_t id : instruction.operands)
        release(id);
      return;
    }
    for (int32_t id : instruction.operands) {
      if (states[id] == State::Undefined)
        fail("MP2120", id, "is used before it is defined");
      else if (states[id] == State::Freed)
        fail("MP2121", id, "is used after it is freed");
    }
    checkWrites(instruction);
    for (int32_t id : instruction.results)
      if (id != None)
        define(id, instruction);
    if (instruction.kind == InstructionKind::Send)
      sent.push_back(rootOf(role, instruction.operands[0]));
  }

  void release(int32_t id) {
    Lifetime lifetime = role.values[id].lifetime;
    bool mayEnd =
        lifetime == Lifetime::Local ||
        (lifetime == Lifetime::Saved && current->kind == SegmentKind::Backward);
    if (!mayEnd)
      fail("MP2125", id, "outlives this segment and is freed in it");
    else if (states[id] == State::Undefined)
      fail("MP2122", id, "is freed before it is defined");
    else if (states[id] == State::Freed)
      fail("MP2122", id, "is freed twice");
    states[id] = State::Freed;
  }

  void define(int32_t id, const Instruction &instruction) {
    const ProgramValue &value = role.values[id];
    bool runsOnce = current->kind == SegmentKind::Begin ||
                    current->kind == SegmentKind::Step;
    if (value.lifetime == Lifetime::Persistent || isInput[id])
      fail("MP2125", id, "is a leaf and the result of an instruction");
    else if (value.lifetime == Lifetime::Saved &&
             current->kind != SegmentKind::Forward)
      fail("MP2125", id, "is saved outside of Forward");
    else if (value.lifetime == Lifetime::Carried && !runsOnce)
      fail("MP2125", id, "is carried and made once for each unit");
    else if (states[id] != State::Undefined)
      fail("MP2124", id, "is defined twice");
    states[id] = State::Live;
    checkAlias(id, instruction);
  }

  /// A view shares the storage of an operand; Zero and AllReduce that of their
  /// only one.
  void checkAlias(int32_t id, const Instruction &instruction) {
    int32_t base = role.values[id].aliasOf;
    bool mustShare = instruction.kind == InstructionKind::Zero ||
                     instruction.kind == InstructionKind::AllReduce;
    bool mayShare = mustShare || instruction.kind == InstructionKind::Call;
    if (mustShare && base != instruction.operands[0])
      return fail("MP2126", id, "is not declared an alias of the operand");
    if (base == None)
      return;
    bool isOperand =
        std::find(instruction.operands.begin(), instruction.operands.end(),
                  base) != instruction.operands.end();
    if (!mayShare || !isOperand)
      fail("MP2126", id, "is declared an alias of what is no operand");
  }

  void checkWrites(const Instruction &instruction) {
    bool writes = isInPlace(instruction) ||
                  instruction.kind == InstructionKind::AllReduce ||
                  instruction.kind == InstructionKind::Update;
    if (!writes || instruction.operands.empty())
      return;
    int32_t target = rootOf(role, instruction.operands[0]);
    if (std::find(sent.begin(), sent.end(), target) != sent.end())
      fail("MP2127", target, "is written while it is being sent");
    if (instruction.kind == InstructionKind::AllReduce &&
        role.values[target].lifetime == Lifetime::Persistent)
      fail("MP2127", target, "persists and is reduced in place");
  }

  void fail(std::string_view id, int32_t value, const char *what) {
    findings.add(id, fmt::format("value {} {}", nameOf(role, value), what),
                 placeOf(role, *current, index));
  }

  const Role &role;
  Findings &findings;
  std::vector<State> states;
  std::vector<bool> isInput;
  const Segment *current = nullptr;
  size_t index = 0;
  /// Storages that a send of this segment holds.
  std::vector<int32_t> sent;
};

} // namespace

void checkLifetimes(const Role &role, Findings &findings) {
  LifetimeChecker(role, findings).run();
}

} // namespace monarch
