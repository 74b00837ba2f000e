//===- Memory.cpp ---------------------------------------------------------===//
//
// See Memory.h. What is counted follows runtime/exec: zeroed values are made
// when a step begins, the inputs of a segment before its first instruction, a
// result while its operands live, and local values end with their segment.
//
//===----------------------------------------------------------------------===//
#include "core/program/Memory.h"

#include "core/program/Strides.h"
#include "core/program/Traffic.h"
#include "core/program/Verify.h"

#include <algorithm>

namespace monarch {

namespace {

/// Numbers in calls become 8-byte tensors for its duration.
constexpr int64_t CallScratchBytes = 64;

/// What a segment does to storages, without the instructions around it: the
/// schedule runs it once for each unit, and each class of ranks does that.
struct Tape {
  enum class Action : int32_t {
    Make,  ///< the value gets storage of its own
    Share, ///< the value shares the storage of the value in the next step
    Base,
    Drop,
    Hold, ///< a send holds the value's storage
    Call, ///< scratch of the call with this number
    /// Zero: makes the value off coordinate 0 of an axis, else shares as above.
    Zero,
    Axis
  };
  struct Step {
    Action action;
    int32_t operand;
  };
  SegmentKind kind;
  std::vector<Step> steps;
  std::vector<int32_t> inputs;
  /// Local values that it makes.
  std::vector<int32_t> locals;
  std::vector<const Instruction *> calls;
};

Tape tapeOf(const Role &role, const Segment &segment) {
  Tape tape{segment.kind, {}, {}, {}, {}};
  std::vector<bool> reads(role.values.size(), false);
  auto add = [&](Tape::Action action, int32_t operand) {
    tape.steps.push_back({action, operand});
  };
  auto result = [&](int32_t id) {
    if (id == None)
      return;
    if (role.values[id].lifetime == Lifetime::Local)
      tape.locals.push_back(id);
    if (int32_t base = role.values[id].aliasOf; base != None) {
      add(Tape::Action::Share, id);
      add(Tape::Action::Base, base);
    } else {
      add(Tape::Action::Make, id);
    }
  };
  for (const Instruction &instruction : segment.instructions) {
    for (int32_t operand : instruction.operands)
      reads[operand] = true;
    switch (instruction.kind) {
    case InstructionKind::Send:
      add(Tape::Action::Hold, instruction.operands[0]);
      break;
    case InstructionKind::Free:
      for (int32_t id : instruction.operands)
        add(Tape::Action::Drop, id);
      break;
    case InstructionKind::Zero:
      add(Tape::Action::Zero, instruction.results[0]);
      add(Tape::Action::Base, instruction.operands[0]);
      add(Tape::Action::Axis, instruction.axes[0]);
      tape.locals.push_back(instruction.results[0]);
      break;
    default:
      for (int32_t id : instruction.results)
        result(id);
      if (instruction.kind == InstructionKind::Call) {
        add(Tape::Action::Call, static_cast<int32_t>(tape.calls.size()));
        tape.calls.push_back(&instruction);
      }
    }
  }
  for (const ProgramInput &input : role.inputs)
    if (reads[input.value]) {
      tape.inputs.push_back(input.value);
      tape.locals.push_back(input.value);
    }
  return tape;
}

class MemoryWalk {
public:
  MemoryWalk(const StageSizes &sizes, const std::vector<Tape> &tapes,
             OptimizerKind optimizer, int64_t rank)
      : sizes(sizes), role(sizes.role()), rank(rank), tapes(tapes),
        storageOf(role.values.size(), None) {
    for (int32_t id = 0; id < static_cast<int32_t>(role.values.size()); ++id) {
      bytes.push_back(sizes.bytes(id, rank));
      if (role.values[id].lifetime == Lifetime::Saved)
        savedIds.push_back(id);
    }
    std::vector<bool> contiguous = contiguousValues(sizes, rank);
    for (const Tape &tape : tapes) {
      scratch.emplace_back();
      for (const Instruction *call : tape.calls)
        scratch.back().push_back(scratchOf(*call, contiguous));
    }
    findUses();
    makePersistent(optimizer);
  }

  PeakMemory run() {
    for (int32_t id : role.zeroed)
      make(id);
    if (role.scalars.random != None)
      make(role.scalars.random);
    for (const Slot &slot : role.schedule)
      for (size_t i = 0; i < tapes.size(); ++i)
        if (tapes[i].kind == slot.segment)
          runSegment(tapes[i], scratch[i], slot.unit);
    return peak;
  }

private:
  struct StorageState {
    int64_t bytes = 0;
    int64_t references = 0;
    MemoryUse use = MemoryUse::Passing;
  };

  void findUses() {
    uses.assign(role.values.size(), MemoryUse::Passing);
    for (const Segment &segment : role.segments)
      for (const Instruction &instruction : segment.instructions)
        if (instruction.kind == InstructionKind::AllGather ||
            instruction.kind == InstructionKind::ReduceScatter ||
            instruction.kind == InstructionKind::AllToAll ||
            instruction.kind == InstructionKind::Receive)
          for (int32_t id : instruction.results)
            if (id != None)
              uses[id] = MemoryUse::Communication;
    for (size_t id = 0; id < uses.size(); ++id)
      if (role.values[id].lifetime == Lifetime::Saved)
        uses[id] = MemoryUse::Saved;
      else if (role.values[id].lifetime != Lifetime::Local)
        uses[id] = MemoryUse::Buffers;
    for (const ProgramParameter &parameter : role.parameters) {
      uses[parameter.value] = MemoryUse::Parameters;
      if (parameter.gradient != None)
        uses[parameter.gradient] = MemoryUse::Gradients;
      if (parameter.master != None)
        uses[parameter.master] = MemoryUse::Optimizer;
    }
  }

  int64_t scratchOf(const Instruction &call,
                    const std::vector<bool> &contiguous) const {
    std::vector<TensorType> operands;
    for (int32_t id : call.operands) {
      operands.push_back(sizes.tensor(id, rank));
      operands.back().contiguous = contiguous[id];
    }
    CallCost cost =
        callCost(call.name, operands, sizes.tensors(call.results, rank));
    return addSizes(cost.workspaceBytes, CallScratchBytes);
  }

  void makePersistent(OptimizerKind optimizer) {
    for (const ProgramParameter &parameter : role.parameters) {
      make(parameter.value);
      if (parameter.master != None)
        make(parameter.master);
    }
    for (const ProgramBuffer &buffer : role.buffers)
      make(buffer.value);
    for (const ProgramIndex &index : role.indices)
      make(index.value);
    if (role.scalars.seed != None)
      make(role.scalars.seed);
    if (optimizer != OptimizerKind::AdamW)
      return;
    std::vector<bool> updated(role.values.size(), false);
    for (const Segment &segment : role.segments)
      for (const Instruction &instruction : segment.instructions)
        if (instruction.kind == InstructionKind::Update)
          updated[instruction.operands[0]] = true;
    for (size_t id = 0; id < updated.size(); ++id)
      if (updated[id]) // mean and square of the gradient
        grow(multiplySizes(2, bytes[id]), MemoryUse::Optimizer);
  }

  void runSegment(const Tape &tape, const std::vector<int64_t> &callScratch,
                  int64_t unit) {
    swapSaved(unit);
    for (int32_t input : tape.inputs)
      make(input);
    const std::vector<Tape::Step> &steps = tape.steps;
    for (size_t i = 0; i < steps.size(); ++i) {
      int32_t operand = steps[i].operand;
      switch (steps[i].action) {
      case Tape::Action::Make:
        make(operand);
        break;
      case Tape::Action::Share:
        share(operand, steps[++i].operand);
        break;
      case Tape::Action::Drop:
        drop(operand);
        break;
      case Tape::Action::Hold:
        hold(operand, unit);
        break;
      case Tape::Action::Call:
        note(callScratch[operand]);
        break;
      case Tape::Action::Zero:
        if (sizes.coordinates(rank)[steps[i + 2].operand] != 0)
          make(operand);
        else
          share(operand, steps[i + 1].operand);
        i += 2;
        break;
      case Tape::Action::Base:
      case Tape::Action::Axis:
        break;
      }
    }
    for (int32_t id : tape.locals)
      drop(id);
    swapSaved(unit);
    // The runtime waits for the sends of a unit when the next one's backward is
    // over, and for the rest at the end of the step.
    if (tape.kind == SegmentKind::Backward)
      releaseSends(unit - 1);
  }

  void hold(int32_t id, int64_t unit) {
    int32_t storage = storageOf[id];
    if (storage == None)
      return;
    ++storages[storage].references;
    sends[unit].push_back(storage);
  }

  void grow(int64_t count, MemoryUse use) {
    current = addSizes(current, count);
    currentOf(use) = addSizes(currentOf(use), count);
    note(0);
  }

  /// A peak if what is alive, with this scratch, is the most so far.
  void note(int64_t scratchBytes) {
    const int64_t total = addSizes(current, scratchBytes);
    if (total <= peak.bytes)
      return;
    peak = {total, byUse};
    peak.byUse[static_cast<size_t>(MemoryUse::Workspace)] = scratchBytes;
  }

  int64_t &currentOf(MemoryUse use) { return byUse[static_cast<size_t>(use)]; }

  void make(int32_t id) {
    drop(id);
    int32_t storage;
    if (unused.empty()) {
      storage = static_cast<int32_t>(storages.size());
      storages.emplace_back();
    } else {
      storage = unused.back();
      unused.pop_back();
    }
    storages[storage] = {bytes[id], 1, uses[id]};
    storageOf[id] = storage;
    grow(bytes[id], uses[id]);
  }

  void share(int32_t id, int32_t base) {
    int32_t storage = storageOf[base];
    if (storage != None) {
      ++storages[storage].references;
      // A saved view keeps what was made in passing.
      if (uses[id] == MemoryUse::Saved)
        reuse(storages[storage], MemoryUse::Saved);
    }
    drop(id);
    storageOf[id] = storage;
  }

  void reuse(StorageState &storage, MemoryUse use) {
    if (storage.use != MemoryUse::Passing &&
        storage.use != MemoryUse::Communication)
      return;
    currentOf(storage.use) -= storage.bytes;
    currentOf(use) = addSizes(currentOf(use), storage.bytes);
    storage.use = use;
  }

  void drop(int32_t id) {
    if (storageOf[id] != None)
      release(std::exchange(storageOf[id], None));
  }

  void release(int32_t storage) {
    if (--storages[storage].references > 0)
      return;
    current -= storages[storage].bytes;
    currentOf(storages[storage].use) -= storages[storage].bytes;
    unused.push_back(storage);
  }

  void releaseSends(int64_t unit) {
    for (int32_t storage : sends[unit])
      release(storage);
    sends.erase(unit);
  }

  /// Between `storageOf` and the slots of the unit: a second call takes it
  /// back.
  void swapSaved(int64_t unit) {
    if (savedIds.empty() || unit < 0)
      return;
    std::vector<int32_t> &slots = saved[unit];
    slots.resize(savedIds.size(), None);
    for (size_t i = 0; i < savedIds.size(); ++i)
      std::swap(storageOf[savedIds[i]], slots[i]);
  }

  const StageSizes &sizes;
  const Role &role;
  int64_t rank;
  const std::vector<Tape> &tapes;
  std::vector<int64_t> bytes;
  /// Of the storage that a value makes.
  std::vector<MemoryUse> uses;
  /// By tape and call: bytes that it needs beyond operands and results.
  std::vector<std::vector<int64_t>> scratch;
  std::vector<int32_t> savedIds;
  /// By value, None while it is not alive.
  std::vector<int32_t> storageOf;
  std::vector<StorageState> storages;
  std::vector<int32_t> unused;
  std::map<int64_t, std::vector<int32_t>> saved, sends;
  int64_t current = 0;
  std::array<int64_t, MemoryUses> byUse{};
  PeakMemory peak;
};

std::vector<Tape> tapesOf(const Role &role) {
  std::vector<Tape> tapes;
  for (const Segment &segment : role.segments)
    tapes.push_back(tapeOf(role, segment));
  return tapes;
}

} // namespace

std::string_view toString(MemoryUse use) {
  static constexpr std::string_view Names[MemoryUses] = {
      "parameters", "gradients", "optimizer",     "buffers",
      "saved",      "passing",   "communication", "workspace"};
  return Names[static_cast<size_t>(use)];
}

std::vector<int64_t> peakBytesOf(const StageSizes &sizes,
                                 OptimizerKind optimizer,
                                 const std::vector<int64_t> &ranks) {
  const std::vector<Tape> tapes = tapesOf(sizes.role());
  std::vector<int64_t> peaks;
  for (int64_t rank : ranks)
    peaks.push_back(MemoryWalk(sizes, tapes, optimizer, rank).run().bytes);
  return peaks;
}

int64_t peakBytesOf(const Program &program, int64_t rank) {
  int64_t stageRanks = program.mesh.size();
  StageSizes sizes(program, program.roles[rank / stageRanks]);
  return peakBytesOf(sizes, program.optimizer, {rank % stageRanks}).front();
}

PeakMemory fullestRank(const Program &program, const Role &role) {
  const StageSizes sizes(program, role);
  const std::vector<Tape> tapes = tapesOf(role);
  PeakMemory fullest;
  for (int64_t rank : sizes.classes()) {
    const PeakMemory own =
        MemoryWalk(sizes, tapes, program.optimizer, rank).run();
    if (own.bytes > fullest.bytes)
      fullest = own;
  }
  return fullest;
}

void predict(Program &program) {
  program.predicted = {};
  program.predictedPeakBytes = 0;
  for (const Role &role : program.roles) {
    StageSizes sizes(program, role);
    for (int64_t rank = 0; rank < sizes.ranks(); ++rank) {
      Traffic traffic = trafficOf(sizes, rank);
      for (const auto &[kind, count] : traffic.bytes)
        program.predicted.bytes[kind] += count;
      for (const auto &[kind, count] : traffic.collectives)
        program.predicted.collectives[kind] += count;
    }
    for (int64_t peak : peakBytesOf(sizes, program.optimizer, sizes.classes()))
      program.predictedPeakBytes = std::max(program.predictedPeakBytes, peak);
  }
}

} // namespace monarch
