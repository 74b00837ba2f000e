//===- Machine.h - the executor's inside ----------------------------------===//
//
// Split in two files: Load.cpp settles what depends on the rank, Step.cpp walks
// the schedule. Invariant: `values[v]` is defined exactly while value v lives;
// saved values of units that are not running lie in `saved`.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/exec/BoxedCall.h"
#include "runtime/exec/Executor.h"

namespace monarch::runtime {

/// An instruction with all that the rank adds to it.
struct LoadedInstruction {
  const Instruction *source = nullptr;
  std::optional<BoxedCall> call;
  /// Of a collective, once connected.
  const Group *group = nullptr;
  std::vector<int64_t> sendSizes;
  std::vector<int64_t> receiveSizes;
  /// Rank of the world at the other end of a send or receive.
  int64_t peer = -1;
};

struct LoadedSegment {
  SegmentKind kind;
  std::vector<LoadedInstruction> instructions;
  /// Indices of Role::inputs that it reads.
  std::vector<size_t> inputs;
};

class Executor::Machine {
public:
  Machine(const Program &program, Communicator &communicator,
          MemoryTally &tally, ExecutorOptions options);

  std::optional<Error> load(WeightSource &weights);
  std::optional<Error> connect();
  Expected<StepResult> step(int64_t step, BatchSource &batches);

  const Program &program;
  Communicator &communicator;
  MemoryTally &tally;
  const Role &role;
  RankView view;
  std::vector<at::Tensor> values;

private:
  std::optional<Error> loadWeights(WeightSource &weights);
  std::optional<Error> loadInstructions();
  Expected<LoadedInstruction> loadInstruction(const Instruction &instruction);

  std::optional<Error> runSchedule(StepResult &result, BatchSource &batches);
  std::optional<Error> runSegment(const LoadedSegment &segment, int64_t unit,
                                  BatchSource &batches);
  void observe(const LoadedSegment &segment, int64_t unit,
               size_t instruction) const;
  std::optional<Error> readInputs(const LoadedSegment &segment, int64_t unit,
                                  BatchSource &batches);
  std::optional<Error> run(const LoadedInstruction &instruction, int64_t unit);
  std::optional<Error> runCall(const LoadedInstruction &instruction);
  std::optional<Error> runUpdate(const Instruction &instruction);
  std::optional<Error> define(int32_t id, at::Tensor tensor,
                              const std::vector<at::Tensor> &operands);
  void setScalars(int64_t unit);
  void swapSaved(int64_t unit);
  void dropCarried();

  at::Tensor emptyFor(int32_t id) const {
    return emptyTensor(role.values[id].type, shapes[id]);
  }
  int64_t globalUnit(int64_t unit) const;
  std::string placeText() const;

  ExecutorOptions options;
  Optimizer optimizer;
  /// Per value, evaluated for this rank.
  std::vector<std::vector<int64_t>> shapes;
  std::vector<int32_t> savedIds;
  std::vector<int32_t> localIds;
  /// Carried values that end with the step; buffers do not.
  std::vector<int32_t> carriedIds;
  std::vector<LoadedSegment> segments;
  std::map<int32_t, const ProgramParameter *> parameterOf;
  std::map<int64_t, std::vector<at::Tensor>> saved;
  int64_t replica = 0;
  int64_t replicas = 1;
  int64_t currentStep = 0;
  Progress ownProgress;
  Progress &progress;
};

} // namespace monarch::runtime
