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

class MemoryWalk {
public:
  MemoryWalk(const StageSizes &sizes, OptimizerKind optimizer, int64_t rank)
      : sizes(sizes), role(sizes.role()), rank(rank),
        contiguous(contiguousValues(sizes, rank)),
        storageOf(role.values.size(), None) {
    for (int32_t id = 0; id < static_cast<int32_t>(role.values.size()); ++id) {
      bytes.push_back(sizes.bytes(id, rank));
      if (role.values[id].lifetime == Lifetime::Saved)
        savedIds.push_back(id);
      else if (role.values[id].lifetime == Lifetime::Local)
        localIds.push_back(id);
    }
    for (const Segment &segment : role.segments)
      loaded.push_back(load(segment));
    makePersistent(optimizer);
  }

  int64_t run() {
    for (int32_t id : role.zeroed)
      make(id);
    if (role.scalars.random != None)
      make(role.scalars.random);
    for (const Slot &slot : role.schedule)
      for (const Loaded &segment : loaded)
        if (segment.source->kind == slot.segment)
          runSegment(segment, slot.unit);
    return peak;
  }

private:
  struct Loaded {
    const Segment *source;
    std::vector<int32_t> inputs;
    /// By instruction: bytes that it needs beyond operands and results.
    std::vector<int64_t> scratch;
  };
  struct StorageState {
    int64_t bytes = 0;
    int64_t references = 0;
  };

  Loaded load(const Segment &segment) {
    Loaded result{&segment, {}, {}};
    std::vector<bool> reads(role.values.size(), false);
    for (const Instruction &instruction : segment.instructions) {
      for (int32_t operand : instruction.operands)
        reads[operand] = true;
      result.scratch.push_back(scratchOf(instruction));
    }
    for (const ProgramInput &input : role.inputs)
      if (reads[input.value])
        result.inputs.push_back(input.value);
    return result;
  }

  int64_t scratchOf(const Instruction &instruction) const {
    if (instruction.kind != InstructionKind::Call)
      return 0;
    std::vector<TensorType> operands;
    for (int32_t id : instruction.operands) {
      operands.push_back(sizes.tensor(id, rank));
      operands.back().contiguous = contiguous[id];
    }
    CallCost cost = callCost(instruction.name, operands,
                             sizes.tensors(instruction.results, rank));
    return addSizes(cost.workspaceBytes, CallScratchBytes);
  }

  void makePersistent(OptimizerKind optimizer) {
    for (const ProgramParameter &parameter : role.parameters)
      make(parameter.value);
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
        grow(multiplySizes(2, bytes[id]));
  }

  void runSegment(const Loaded &segment, int64_t unit) {
    swapSaved(unit);
    for (int32_t input : segment.inputs)
      make(input);
    const auto &instructions = segment.source->instructions;
    for (size_t i = 0; i < instructions.size(); ++i) {
      run(instructions[i], unit);
      peak = std::max(peak, addSizes(current, segment.scratch[i]));
    }
    for (int32_t id : localIds)
      drop(id);
    swapSaved(unit);
    // The runtime waits for the sends of a unit when the next one's backward is
    // over, and for the rest at the end of the step.
    if (segment.source->kind == SegmentKind::Backward)
      releaseSends(unit - 1);
  }

  void run(const Instruction &instruction, int64_t unit) {
    switch (instruction.kind) {
    case InstructionKind::Send:
      if (int32_t storage = storageOf[instruction.operands[0]];
          storage != None) {
        ++storages[storage].references;
        sends[unit].push_back(storage);
      }
      return;
    case InstructionKind::Free:
      for (int32_t id : instruction.operands)
        drop(id);
      return;
    case InstructionKind::Zero:
      if (sizes.coordinates(rank)[instruction.axes[0]] != 0)
        make(instruction.results[0]);
      else
        share(instruction.results[0], instruction.operands[0]);
      return;
    default:
      for (int32_t id : instruction.results)
        if (id != None) {
          if (role.values[id].aliasOf != None)
            share(id, role.values[id].aliasOf);
          else
            make(id);
        }
    }
  }

  void grow(int64_t count) {
    current = addSizes(current, count);
    peak = std::max(peak, current);
  }

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
    storages[storage] = {bytes[id], 1};
    storageOf[id] = storage;
    grow(bytes[id]);
  }

  void share(int32_t id, int32_t base) {
    int32_t storage = storageOf[base];
    if (storage != None)
      ++storages[storage].references;
    drop(id);
    storageOf[id] = storage;
  }

  void drop(int32_t id) {
    if (storageOf[id] != None)
      release(std::exchange(storageOf[id], None));
  }

  void release(int32_t storage) {
    if (--storages[storage].references > 0)
      return;
    current -= storages[storage].bytes;
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
  std::vector<int64_t> bytes;
  std::vector<bool> contiguous;
  std::vector<int32_t> savedIds, localIds;
  std::vector<Loaded> loaded;
  /// By value, None while it is not alive.
  std::vector<int32_t> storageOf;
  std::vector<StorageState> storages;
  std::vector<int32_t> unused;
  std::map<int64_t, std::vector<int32_t>> saved, sends;
  int64_t current = 0;
  int64_t peak = 0;
};

} // namespace

int64_t peakBytesOf(const StageSizes &sizes, OptimizerKind optimizer,
                    int64_t rank) {
  return MemoryWalk(sizes, optimizer, rank).run();
}

int64_t peakBytesOf(const Program &program, int64_t rank) {
  int64_t stageRanks = program.mesh.size();
  StageSizes sizes(program, program.roles[rank / stageRanks]);
  return peakBytesOf(sizes, program.optimizer, rank % stageRanks);
}

void predict(Program &program) {
  program.predicted = {};
  program.predictedPeakBytes = 0;
  for (const Role &role : program.roles) {
    StageSizes sizes(program, role);
    for (int64_t rank = 0; rank < sizes.ranks(); ++rank) {
      Traffic traffic = trafficOf(program.mesh, sizes, rank);
      for (const auto &[kind, count] : traffic.bytes)
        program.predicted.bytes[kind] += count;
      for (const auto &[kind, count] : traffic.collectives)
        program.predicted.collectives[kind] += count;
    }
    for (const std::vector<int64_t> &ranks : sizes.classes())
      program.predictedPeakBytes =
          std::max(program.predictedPeakBytes,
                   peakBytesOf(sizes, program.optimizer, ranks.front()));
  }
}

} // namespace monarch
