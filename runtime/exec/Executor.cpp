//===- Executor.cpp - the border of the executor --------------------------===//
//
// See Executor.h.
//
//===----------------------------------------------------------------------===//
#include "runtime/exec/Machine.h"

#include "runtime/ops/Ops.h"

#include <fmt/format.h>

namespace monarch::runtime {

Executor::Executor(std::unique_ptr<Machine> machine)
    : machine(std::move(machine)) {}
Executor::~Executor() = default;

Expected<std::unique_ptr<Executor>> Executor::create(const Program &program,
                                                     Communicator &communicator,
                                                     MemoryTally &tally,
                                                     WeightSource &weights,
                                                     ExecutorOptions options) {
  if (program.worldSize() != communicator.size())
    return Error{"MP4005", ExitCode::Usage,
                 fmt::format("the program is for {} ranks, there are {}",
                             program.worldSize(), communicator.size()),
                 "", "start as many ranks as the program has"};
  registerOps();
  auto machine = std::make_unique<Machine>(program, communicator, tally,
                                           std::move(options));
  if (auto error = machine->load(weights)) {
    if (error->where.empty())
      error->where = fmt::format("rank {}, before step 1", communicator.rank());
    return *error;
  }
  return std::unique_ptr<Executor>(new Executor(std::move(machine)));
}

std::optional<Error> Executor::connect() { return machine->connect(); }

Expected<StepResult> Executor::step(int64_t step, BatchSource &batches) {
  return machine->step(step, batches);
}

const Program &Executor::program() const { return machine->program; }
const Role &Executor::role() const { return machine->role; }
const RankView &Executor::view() const { return machine->view; }
Communicator &Executor::communicator() const { return machine->communicator; }

at::Tensor Executor::value(int32_t id) const { return machine->values[id]; }

} // namespace monarch::runtime
