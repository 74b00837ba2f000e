//===- Load.cpp - what depends on the rank, settled once ------------------===//
//
// See Machine.h.
//
//===----------------------------------------------------------------------===//
#include "runtime/exec/Machine.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <fmt/format.h>

#include <algorithm>

namespace monarch::runtime {

static bool isCollective(InstructionKind kind) {
  return kind == InstructionKind::AllReduce ||
         kind == InstructionKind::AllGather ||
         kind == InstructionKind::ReduceScatter ||
         kind == InstructionKind::AllToAll;
}

BlockIndices blockOf(const TensorStructure &structure, const Layout &layout,
                     const Program &program,
                     const std::vector<int64_t> &coordinates) {
  BlockIndices indices;
  for (size_t dim = 0; dim < structure.size(); ++dim)
    indices.push_back(localIndices(structure[dim], static_cast<int>(dim),
                                   layout, program.mesh, program.tables,
                                   coordinates));
  return indices;
}

std::vector<int64_t> wholeShape(const TensorStructure &structure) {
  std::vector<int64_t> shape;
  for (const DimStructure &dim : structure)
    shape.push_back(dim.size);
  return shape;
}

Executor::Machine::Machine(const Program &program, Communicator &communicator,
                           MemoryTally &tally, ExecutorOptions options)
    : program(program), communicator(communicator), tally(tally),
      role(program.roles[communicator.rank() / program.mesh.size()]),
      view(program.mesh, program.tables, role.shards,
           program.mesh.coordinates(communicator.rank() % program.mesh.size())),
      values(role.values.size()), options(std::move(options)),
      optimizer(program.optimizer, this->options.optimizer),
      progress(this->options.progress ? *this->options.progress : ownProgress) {
  for (size_t axis = 0; axis < program.mesh.axes.size(); ++axis)
    if (program.mesh.axes[axis].role == AxisRole::Data) {
      replica =
          replica * program.mesh.axes[axis].size + view.coordinates()[axis];
      replicas *= program.mesh.axes[axis].size;
    }
}

std::optional<Error> Executor::Machine::load(WeightSource &weights) {
  std::set<int32_t> buffers;
  for (const ProgramBuffer &buffer : role.buffers)
    buffers.insert(buffer.value);
  for (size_t id = 0; id < role.values.size(); ++id) {
    const ProgramValue &value = role.values[id];
    shapes.push_back(view.evaluate(value.shape));
    if (value.lifetime == Lifetime::Saved)
      savedIds.push_back(static_cast<int32_t>(id));
    else if (value.lifetime == Lifetime::Local)
      localIds.push_back(static_cast<int32_t>(id));
    else if (value.lifetime == Lifetime::Carried &&
             !buffers.count(static_cast<int32_t>(id)))
      carriedIds.push_back(static_cast<int32_t>(id));
  }
  at::AutoDispatchBelowADInplaceOrView belowAutograd;
  MemoryScope scope(&tally);
  try {
    if (auto error = loadWeights(weights))
      return error;
  } catch (const std::exception &exception) {
    return failedCall(messageOf(exception));
  }
  return loadInstructions();
}

std::optional<Error> Executor::Machine::loadWeights(WeightSource &weights) {
  auto read = [&](const auto &entry, const Layout &layout,
                  int32_t id) -> std::optional<Error> {
    DType type = role.values[id].type;
    Expected<at::Tensor> whole = [&] {
      MemoryScope uncounted(nullptr);
      return weights.read(
          {entry.names, entry.storage, type, wholeShape(entry.structure),
           std::is_same_v<std::decay_t<decltype(entry)>, ProgramParameter>});
    }();
    if (!whole)
      return whole.error();
    at::Tensor block = takeBlock(
        *whole, blockOf(entry.structure, layout, program, view.coordinates()));
    if (block.scalar_type() != scalarTypeOf(type) ||
        block.sizes() != at::IntArrayRef(shapes[id]))
      return contradiction(fmt::format(
          "{} has a block of {}, the program declares {}", entry.names[0],
          shapeText(block.sizes()), shapeText(shapes[id])));
    values[id] = std::move(block);
    return std::nullopt;
  };
  for (const ProgramParameter &parameter : role.parameters) {
    // A wider file is not rounded on its way to the master copy.
    const int32_t updated = updatedValue(parameter);
    if (auto error = read(parameter, parameter.layout, updated))
      return error;
    if (updated != parameter.value)
      values[parameter.value] =
          values[updated].to(scalarTypeOf(role.values[parameter.value].type));
    parameterOf[updated] = &parameter;
  }
  for (const ProgramBuffer &buffer : role.buffers)
    if (auto error = read(buffer, Layout::replicated(program.mesh.axes.size()),
                          buffer.value))
      return error;
  for (const ProgramIndex &index : role.indices) {
    std::vector<int64_t> list = view.evaluate(index.list);
    if (shapes[index.value] !=
        std::vector<int64_t>{static_cast<int64_t>(list.size())})
      return contradiction(
          fmt::format("an index list of {} elements is declared {}",
                      list.size(), shapeText(shapes[index.value])));
    at::Tensor tensor = emptyFor(index.value);
    std::copy(list.begin(), list.end(), tensor.mutable_data_ptr<int64_t>());
    values[index.value] = std::move(tensor);
  }
  return std::nullopt;
}

std::optional<Error> Executor::Machine::connect() {
  auto ranksOf = [&](const LoadedInstruction &loaded) {
    return ranksAlong(program.mesh, role.stage, view.coordinates(),
                      loaded.source->axes);
  };
  std::vector<LoadedInstruction *> collectives;
  std::set<RankList> groups;
  for (LoadedSegment &segment : segments)
    for (LoadedInstruction &loaded : segment.instructions)
      if (isCollective(loaded.source->kind)) {
        collectives.push_back(&loaded);
        groups.insert(ranksOf(loaded));
      }
  if (auto error = communicator.connect(groups))
    return error;
  for (LoadedInstruction *loaded : collectives)
    loaded->group = &communicator.group(ranksOf(*loaded));
  return std::nullopt;
}

std::optional<Error> Executor::Machine::loadInstructions() {
  std::map<int32_t, size_t> inputOf;
  for (size_t i = 0; i < role.inputs.size(); ++i)
    inputOf[role.inputs[i].value] = i;
  for (const Segment &segment : role.segments) {
    LoadedSegment loaded{segment.kind, {}, {}};
    std::set<size_t> inputs;
    for (const Instruction &instruction : segment.instructions) {
      auto added = loadInstruction(instruction);
      if (!added)
        return added.error();
      loaded.instructions.push_back(std::move(*added));
      for (int32_t operand : instruction.operands)
        if (auto found = inputOf.find(operand); found != inputOf.end())
          inputs.insert(found->second);
    }
    loaded.inputs.assign(inputs.begin(), inputs.end());
    segments.push_back(std::move(loaded));
  }
  return std::nullopt;
}

Expected<LoadedInstruction>
Executor::Machine::loadInstruction(const Instruction &instruction) {
  LoadedInstruction loaded;
  loaded.source = &instruction;
  loaded.sendSizes = view.evaluate(instruction.sendSizes);
  loaded.receiveSizes = view.evaluate(instruction.receiveSizes);
  switch (instruction.kind) {
  case InstructionKind::Call: {
    // The numbers that a call holds are code, no tensors of the program.
    MemoryScope uncounted(nullptr);
    auto call = BoxedCall::resolve(instruction, view);
    if (!call)
      return call.error();
    loaded.call = std::move(*call);
    break;
  }
  case InstructionKind::Send:
  case InstructionKind::Receive:
    loaded.peer = instruction.peerStage * program.mesh.size() +
                  program.mesh.rankInStage(view.coordinates());
    break;
  case InstructionKind::Update:
    optimizer.add(instruction.operands[0], values[instruction.operands[0]]);
    break;
  case InstructionKind::AllReduce:
  case InstructionKind::AllGather:
  case InstructionKind::ReduceScatter:
  case InstructionKind::AllToAll:
  case InstructionKind::Zero:
  case InstructionKind::Free:
    break;
  }
  return loaded;
}

} // namespace monarch::runtime
