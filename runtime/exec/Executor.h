//===- Executor.h - one rank runs its role's schedule ---------------------===//
//
// A thin interpreter: everything that depends on the rank (sizes, index lists,
// groups, schemas) is settled when the program is loaded, a step only walks the
// schedule. Results are compared with the declared shapes and types, and the
// aliasing of the program is enforced: a result that is declared to own its
// storage is made contiguous and apart if the op returned a view, one that is
// declared a view must be one.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/comm/Communicator.h"
#include "runtime/data/Sources.h"
#include "runtime/exec/Optimizer.h"
#include "runtime/exec/Progress.h"
#include "runtime/support/MemoryTally.h"
#include "runtime/support/Tensors.h"

#include <functional>
#include <memory>

namespace monarch::runtime {

/// `unit` is of the global batch, -1 outside units; `instruction` an index in
/// the segment.
struct InstructionPlace {
  SegmentKind segment = SegmentKind::Forward;
  int64_t unit = -1;
  size_t instruction = 0;
};
using InstructionHook = std::function<void(
    const InstructionPlace &place, const std::vector<at::Tensor> &values)>;

struct ExecutorOptions {
  int64_t seed = 0;
  OptimizerSettings optimizer;
  /// Sees each parameter (its master copy, where it has one) with its reduced
  /// gradient, before clipping and update. Not counted as memory of the rank.
  std::function<void(const ProgramParameter &parameter, const at::Tensor &value,
                     const at::Tensor &gradient)>
      onUpdate;
  /// Before each instruction of a segment, and once behind its last: what the
  /// rank's values are, undefined where they do not live. Not counted.
  InstructionHook onInstruction;
  /// Where the rank says where it is; outlives the executor. May be null.
  Progress *progress = nullptr;
};

struct StepResult {
  /// On the ranks of a stage that has it.
  std::optional<double> loss;
  Traffic traffic;
  int64_t peakBytes = 0;
  double seconds = 0;
  std::map<std::string, double> secondsPerSegment;
};

class Executor {
public:
  /// Takes the rank's blocks of weights; speaks to no other rank. Program,
  /// communicator and tally outlive the executor; the tally outlives its
  /// tensors too.
  static Expected<std::unique_ptr<Executor>>
  create(const Program &program, Communicator &communicator, MemoryTally &tally,
         WeightSource &weights, ExecutorOptions options);
  ~Executor();

  /// Makes the rank's groups: a call of all ranks, once, before the first step.
  std::optional<Error> connect();
  /// Steps count from 0. The error names rank, step, segment and instruction.
  Expected<StepResult> step(int64_t step, BatchSource &batches);

  const Program &program() const;
  const Role &role() const;
  const RankView &view() const;
  Communicator &communicator() const;
  /// A parameter's or buffer's block, as it is now.
  at::Tensor value(int32_t id) const;

private:
  class Machine;
  explicit Executor(std::unique_ptr<Machine> machine);
  std::unique_ptr<Machine> machine;
};

/// The positions that this rank holds of a tensor under a layout.
BlockIndices blockOf(const TensorStructure &structure, const Layout &layout,
                     const Program &program,
                     const std::vector<int64_t> &coordinates);
std::vector<int64_t> wholeShape(const TensorStructure &structure);

} // namespace monarch::runtime
