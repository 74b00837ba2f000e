//===- WideStep.cpp - what rounding alone does to one process -------------===//
//
// See WideStep.h.
//
//===----------------------------------------------------------------------===//
#include "runtime/exec/WideStep.h"

#include "runtime/comm/ThreadCommunicator.h"
#include "runtime/data/MemorySources.h"

namespace monarch::runtime {

static DType widened(DType type) {
  if (!isFloating(type))
    return type;
  return isComplex(type) ? DType::Complex128 : DType::Float64;
}

Program inFloat64(Program program) {
  for (Role &role : program.roles) {
    for (ProgramValue &value : role.values)
      value.type = widened(value.type);
    for (Segment &segment : role.segments)
      for (Instruction &instruction : segment.instructions)
        for (CallArg &arg : instruction.args)
          if (DType *type = std::get_if<DType>(&arg))
            *type = widened(*type);
  }
  return program;
}

namespace {

/// The numbers that the program in its own types would read.
class WideBatches final : public BatchSource {
public:
  WideBatches(const Program &narrow, BatchSource &source)
      : source(source), role(narrow.roles[0]) {}

  Expected<at::Tensor> read(const BatchRequest &request) override {
    BatchRequest asStored = request;
    asStored.type = role.values[request.input.value].type;
    auto tensor = source.read(asStored);
    if (!tensor)
      return tensor.error();
    return tensor->to(scalarTypeOf(request.type));
  }

private:
  BatchSource &source;
  const Role &role;
};

} // namespace

Expected<StepNumbers> stepFrom(const Program &oneProcess, bool isWide,
                               const NamedTensors &state, int64_t seed,
                               int64_t step, BatchSource &batches) {
  const Program program = isWide ? inFloat64(oneProcess) : oneProcess;
  const Role &role = program.roles[0];
  NamedTensors typed;
  auto add = [&](const std::string &name, int32_t value) {
    if (auto found = state.find(name); found != state.end())
      // The step updates them in place.
      typed[name] = found->second.to(scalarTypeOf(role.values[value].type),
                                     false, /*copy=*/true);
  };
  for (const ProgramParameter &parameter : role.parameters)
    add(parameter.names[0], updatedValue(parameter));
  for (const ProgramBuffer &buffer : role.buffers)
    add(buffer.names[0], buffer.value);
  MemoryWeights weights(std::move(typed));
  MemoryTally tally;
  ThreadWorld world(1);
  std::unique_ptr<Communicator> communicator = world.communicator(0);
  StepNumbers numbers;
  ExecutorOptions options;
  options.seed = seed;
  options.onUpdate = [&](const ProgramParameter &parameter, const at::Tensor &,
                         const at::Tensor &gradient) {
    numbers.gradients[parameter.names[0]] = gradient.clone();
  };
  auto executor = Executor::create(program, *communicator, tally, weights,
                                   std::move(options));
  if (!executor)
    return executor.error();
  if (auto error = (*executor)->connect())
    return *error;
  WideBatches wide(oneProcess, batches);
  auto result = (*executor)->step(
      step, isWide ? static_cast<BatchSource &>(wide) : batches);
  if (!result)
    return result.error();
  if (!result->loss)
    return contradiction("the one-process program has no loss");
  numbers.loss = *result->loss;
  return numbers;
}

} // namespace monarch::runtime
