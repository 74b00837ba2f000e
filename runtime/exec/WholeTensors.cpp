//===- WholeTensors.cpp - blocks of all ranks put together ----------------===//
//
// See WholeTensors.h.
//
//===----------------------------------------------------------------------===//
#include "runtime/exec/WholeTensors.h"

namespace monarch::runtime {

// Wire tag 0 and bundle -2 are never those of an instruction.
static constexpr int64_t gatherTag = 0;
static constexpr int64_t gatherBundle = -2;

std::vector<SpreadTensor> spreadParameters(const Program &program) {
  std::vector<SpreadTensor> tensors;
  for (const Role &role : program.roles)
    for (const ProgramParameter &parameter : role.parameters)
      if (const int32_t value = updatedValue(parameter); parameter.owner)
        tensors.push_back({parameter.names, role.stage, parameter.structure,
                           parameter.layout, role.values[value].type, value,
                           parameter.gradient != None});
  return tensors;
}

std::vector<SpreadTensor> spreadBuffers(const Program &program,
                                        bool constants) {
  std::vector<SpreadTensor> tensors;
  std::set<std::string> seen;
  for (const Role &role : program.roles)
    for (const ProgramBuffer &buffer : role.buffers)
      if ((constants || !buffer.constant) &&
          seen.insert(buffer.names[0]).second)
        tensors.push_back({buffer.names, role.stage, buffer.structure,
                           Layout::replicated(program.mesh.axes.size()),
                           role.values[buffer.value].type, buffer.value,
                           false});
  return tensors;
}

/// Of the ranks with equal blocks the one that sends.
static bool isFirstHolder(const Layout &layout,
                          const std::vector<int64_t> &coordinates) {
  for (size_t axis = 0; axis < coordinates.size(); ++axis)
    if (coordinates[axis] != 0 && !layout.states[axis].isSplit())
      return false;
  return true;
}

Expected<NamedTensors>
gatherWhole(const Program &program, Communicator &communicator,
            const std::vector<SpreadTensor> &tensors,
            const std::function<at::Tensor(const SpreadTensor &)> &block) {
  MemoryScope uncounted(nullptr);
  NamedTensors gathered;
  int64_t rank = communicator.rank();
  int64_t stageSize = program.mesh.size();
  for (const SpreadTensor &tensor : tensors) {
    at::Tensor whole;
    if (rank == 0)
      whole = emptyTensor(tensor.type, wholeShape(tensor.structure));
    for (int64_t inStage = 0; inStage < stageSize; ++inStage) {
      auto coordinates = program.mesh.coordinates(inStage);
      if (!isFirstHolder(tensor.layout, coordinates))
        continue;
      int64_t holder = tensor.stage * stageSize + inStage;
      if (rank != 0 && rank != holder)
        continue;
      if (rank != 0) {
        at::Tensor own = block(tensor).contiguous();
        if (auto error = communicator.send(own, 0, gatherTag, gatherBundle))
          return *error;
        if (auto error = communicator.waitForSends(gatherBundle))
          return *error;
        continue;
      }
      BlockIndices indices =
          blockOf(tensor.structure, tensor.layout, program, coordinates);
      at::Tensor part;
      if (holder == 0) {
        part = block(tensor);
      } else {
        std::vector<int64_t> shape;
        for (const auto &dim : indices)
          shape.push_back(static_cast<int64_t>(dim.size()));
        part = emptyTensor(tensor.type, shape);
        if (auto error = communicator.receive(part, holder, gatherTag))
          return *error;
      }
      putBlock(whole, indices, part);
    }
    if (rank == 0)
      gathered[tensor.names[0]] = std::move(whole);
  }
  return gathered;
}

} // namespace monarch::runtime
