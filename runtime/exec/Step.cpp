//===- Step.cpp - walking the schedule ------------------------------------===//
//
// See Machine.h. Exceptions of LibTorch end here, as errors that name rank,
// step, segment, unit and instruction.
//
//===----------------------------------------------------------------------===//
#include "runtime/exec/Machine.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

namespace monarch::runtime {

using Clock = std::chrono::steady_clock;

static double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Expected<StepResult> Executor::Machine::step(int64_t step,
                                             BatchSource &batches) {
  at::AutoDispatchBelowADInplaceOrView belowAutograd;
  MemoryScope scope(&tally);
  currentStep = step;
  progress.step = step + 1;
  tally.restartPeak();
  communicator.takeTraffic();
  communicator.setCounting(true);
  StepResult result;
  Clock::time_point start = Clock::now();
  auto error = runSchedule(result, batches);
  communicator.setCounting(false);
  if (error) {
    communicator.abort(*error);
    return *error;
  }
  result.seconds = secondsSince(start);
  result.traffic = communicator.takeTraffic();
  result.peakBytes = tally.peakBytes();
  return result;
}

std::optional<Error> Executor::Machine::runSchedule(StepResult &result,
                                                    BatchSource &batches) {
  try {
    for (int32_t id : role.zeroed)
      values[id] = zeroTensor(role.values[id].type, shapes[id]);
  } catch (const std::exception &exception) {
    return failedCall(messageOf(exception));
  }
  for (const Slot &slot : role.schedule) {
    auto segment = std::find_if(
        segments.begin(), segments.end(),
        [&](const LoadedSegment &s) { return s.kind == slot.segment; });
    if (segment == segments.end())
      return contradiction(fmt::format("the schedule runs a segment {} that "
                                       "the program does not have",
                                       toString(slot.segment)));
    Clock::time_point start = Clock::now();
    if (auto error = runSegment(*segment, slot.unit, batches))
      return error;
    if (slot.segment == SegmentKind::Backward)
      if (auto error = communicator.waitForSends(slot.unit - 1))
        return error;
    result.secondsPerSegment[std::string(toString(slot.segment))] +=
        secondsSince(start);
  }
  for (int64_t unit = -1; unit < program.unitsPerReplica; ++unit)
    if (auto error = communicator.waitForSends(unit))
      return error;
  if (role.scalars.loss != None && values[role.scalars.loss].defined())
    result.loss = values[role.scalars.loss].item().toDouble();
  // Its sign means nothing, and would be printed.
  if (result.loss && std::isnan(*result.loss))
    result.loss = std::numeric_limits<double>::quiet_NaN();
  dropCarried();
  return std::nullopt;
}

std::optional<Error> Executor::Machine::runSegment(const LoadedSegment &segment,
                                                   int64_t unit,
                                                   BatchSource &batches) {
  progress.segment = static_cast<int32_t>(segment.kind);
  progress.unit = globalUnit(unit);
  progress.instruction = -1;
  auto located = [&](Error error) {
    if (error.where.empty())
      error.where = placeText();
    return error;
  };
  try {
    swapSaved(unit);
    setScalars(unit);
    if (auto error = readInputs(segment, unit, batches))
      return located(std::move(*error));
    size_t index = 0;
    for (const LoadedInstruction &instruction : segment.instructions) {
      ++progress.instruction;
      observe(segment, unit, index++);
      if (auto error = run(instruction, unit))
        return located(std::move(*error));
    }
    observe(segment, unit, index);
    for (int32_t id : localIds)
      values[id].reset();
    swapSaved(unit);
    if (segment.kind == SegmentKind::Backward)
      saved.erase(unit);
  } catch (const std::exception &exception) {
    return located(failedCall(messageOf(exception)));
  }
  return std::nullopt;
}

void Executor::Machine::observe(const LoadedSegment &segment, int64_t unit,
                                size_t instruction) const {
  if (!options.onInstruction)
    return;
  MemoryScope uncounted(nullptr);
  options.onInstruction({segment.kind, globalUnit(unit), instruction}, values);
}

std::optional<Error> Executor::Machine::readInputs(const LoadedSegment &segment,
                                                   int64_t unit,
                                                   BatchSource &batches) {
  for (size_t index : segment.inputs) {
    const ProgramInput &input = role.inputs[index];
    Expected<at::Tensor> whole = [&] {
      MemoryScope uncounted(nullptr);
      return batches.read(
          {input, role.values[input.value].type, wholeShape(input.structure),
           currentStep, globalUnit(unit), replicas * program.unitsPerReplica});
    }();
    if (!whole)
      return whole.error();
    at::Tensor block = takeBlock(*whole, blockOf(input.structure, input.layout,
                                                 program, view.coordinates()));
    if (auto error = define(input.value, std::move(block), {}))
      return error;
  }
  return std::nullopt;
}

std::optional<Error> Executor::Machine::run(const LoadedInstruction &loaded,
                                            int64_t unit) {
  const Instruction &instruction = *loaded.source;
  auto operand = [&](size_t i) -> const at::Tensor & {
    return values[instruction.operands[i]];
  };
  for (int32_t id : instruction.operands)
    if (instruction.kind != InstructionKind::Free && !values[id].defined())
      return contradiction(
          fmt::format("value {} '{}' is not alive", id, role.values[id].name));
  // Told apart by unit; the receiver makes the same number. 0 is not used here.
  int64_t tag = instruction.tag * (program.unitsPerReplica + 1) + unit + 2;
  switch (instruction.kind) {
  case InstructionKind::Call:
    return runCall(loaded);
  case InstructionKind::AllReduce: {
    if (auto error = communicator.allReduce(
            *loaded.group, operand(0),
            instruction.name == "max" ? Reduction::Max : Reduction::Sum))
      return error;
    if (!instruction.results.empty() && instruction.results[0] != None)
      values[instruction.results[0]] = operand(0);
    return std::nullopt;
  }
  case InstructionKind::AllGather: {
    at::Tensor all = emptyFor(instruction.results[0]);
    values[instruction.results[0]] = all;
    return communicator.allGather(*loaded.group, operand(0), all,
                                  loaded.receiveSizes);
  }
  case InstructionKind::ReduceScatter: {
    at::Tensor own = emptyFor(instruction.results[0]);
    values[instruction.results[0]] = own;
    return communicator.reduceScatter(*loaded.group, operand(0), own,
                                      loaded.sendSizes);
  }
  case InstructionKind::AllToAll: {
    at::Tensor in = emptyFor(instruction.results[0]);
    values[instruction.results[0]] = in;
    return communicator.allToAll(*loaded.group, operand(0), in,
                                 loaded.sendSizes, loaded.receiveSizes);
  }
  case InstructionKind::Send:
    return communicator.send(operand(0), loaded.peer, tag, unit);
  case InstructionKind::Receive: {
    at::Tensor tensor = emptyFor(instruction.results[0]);
    values[instruction.results[0]] = tensor;
    return communicator.receive(tensor, loaded.peer, tag);
  }
  case InstructionKind::Zero: {
    bool keeps = view.coordinates()[instruction.axes[0]] == 0;
    int32_t id = instruction.results[0];
    values[id] =
        keeps ? operand(0) : zeroTensor(role.values[id].type, shapes[id]);
    return std::nullopt;
  }
  case InstructionKind::Update:
    return runUpdate(instruction);
  case InstructionKind::Free:
    for (int32_t id : instruction.operands)
      values[id].reset();
    return std::nullopt;
  }
  return std::nullopt;
}

std::optional<Error>
Executor::Machine::runCall(const LoadedInstruction &loaded) {
  const Instruction &instruction = *loaded.source;
  std::vector<at::Tensor> operands;
  operands.reserve(instruction.operands.size());
  for (int32_t id : instruction.operands)
    operands.push_back(values[id]);
  std::vector<at::Tensor> results = loaded.call->run(operands);
  if (instruction.results.size() > results.size())
    return contradiction(fmt::format("{} results, the program declares {}",
                                     results.size(),
                                     instruction.results.size()));
  for (size_t i = 0; i < instruction.results.size(); ++i)
    if (instruction.results[i] != None)
      if (auto error =
              define(instruction.results[i], std::move(results[i]), operands))
        return error;
  return std::nullopt;
}

std::optional<Error>
Executor::Machine::define(int32_t id, at::Tensor tensor,
                          const std::vector<at::Tensor> &operands) {
  const ProgramValue &declared = role.values[id];
  if (!tensor.defined() || tensor.sizes() != at::IntArrayRef(shapes[id]) ||
      tensor.scalar_type() != scalarTypeOf(declared.type))
    return contradiction(fmt::format(
        "value {} '{}' is {} {}, the program declares {} {}", id, declared.name,
        tensor.defined() ? c10::toString(tensor.scalar_type()) : "undefined",
        tensor.defined() ? shapeText(tensor.sizes()) : "",
        toString(declared.type), shapeText(shapes[id])));
  if (declared.aliasOf != None) {
    const at::Tensor &base = values[declared.aliasOf];
    if (!base.defined() || !tensor.is_alias_of(base))
      return contradiction(
          fmt::format("value {} '{}' does not share the storage of value {}",
                      id, declared.name, declared.aliasOf));
  } else if (!tensor.is_contiguous() ||
             std::any_of(operands.begin(), operands.end(),
                         [&](const at::Tensor &operand) {
                           return tensor.is_alias_of(operand);
                         })) {
    tensor = tensor.clone(at::MemoryFormat::Contiguous);
  }
  values[id] = std::move(tensor);
  return std::nullopt;
}

std::optional<Error>
Executor::Machine::runUpdate(const Instruction &instruction) {
  int32_t id = instruction.operands[0];
  const at::Tensor &parameter = values[id];
  const at::Tensor &gradient = values[instruction.operands[1]];
  auto entry = parameterOf.find(id);
  if (entry == parameterOf.end())
    return contradiction(fmt::format("value {} is no parameter", id));
  if (options.onUpdate) {
    MemoryScope uncounted(nullptr);
    options.onUpdate(*entry->second, parameter, gradient);
  }
  double scale = 1;
  if (optimizer.clips()) {
    if (role.scalars.squaredNorm == None)
      return contradiction("the program has no norm of gradients to clip by");
    scale =
        optimizer.clipScale(values[role.scalars.squaredNorm].item().toDouble());
  }
  optimizer.update(id, parameter, gradient, currentStep + 1, scale);
  return std::nullopt;
}

void Executor::Machine::setScalars(int64_t unit) {
  if (int32_t id = role.scalars.random; id != None) {
    if (!values[id].defined())
      values[id] = emptyFor(id);
    int64_t *key = values[id].mutable_data_ptr<int64_t>();
    key[0] = options.seed;
    key[1] = currentStep;
    key[2] = globalUnit(unit);
  }
  if (int32_t id = role.scalars.seed; id != None && !values[id].defined())
    values[id] = emptyFor(id).fill_(1);
}

/// Between `values` and the slots of the unit: a second call takes it back.
void Executor::Machine::swapSaved(int64_t unit) {
  if (savedIds.empty() || unit < 0)
    return;
  std::vector<at::Tensor> &slots = saved[unit];
  slots.resize(savedIds.size());
  for (size_t i = 0; i < savedIds.size(); ++i)
    std::swap(values[savedIds[i]], slots[i]);
}

void Executor::Machine::dropCarried() {
  for (int32_t id : carriedIds)
    values[id].reset();
  saved.clear();
}

int64_t Executor::Machine::globalUnit(int64_t unit) const {
  return unit < 0 ? -1 : replica * program.unitsPerReplica + unit;
}

std::string Executor::Machine::placeText() const {
  return fmt::format("rank {}, {}", communicator.rank(),
                     textOf(progress, role));
}

} // namespace monarch::runtime
