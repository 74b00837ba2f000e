//===- InstructionCost.cpp - picoseconds of one instruction ---------------===//
#include "planner/cost/InstructionCost.h"

#include "core/layout/Reshard.h"

#include <algorithm>

namespace monarch::planner {

RoleView::RoleView(const Role &role, const Mesh &mesh,
                   const OffsetTables &tables, std::vector<int64_t> coordinates)
    : role(role), view(mesh, tables, role.shards, std::move(coordinates)),
      types(role.values.size()) {}

const TensorType &RoleView::type(int32_t value) const {
  std::optional<TensorType> &entry = types[value];
  if (!entry)
    entry = TensorType{role.values[value].type,
                       view.evaluate(role.values[value].shape)};
  return *entry;
}

int64_t RoleView::bytes(int32_t value) const {
  const TensorType &tensor = type(value);
  int64_t bytes = byteWidth(tensor.type);
  for (int64_t size : tensor.shape)
    bytes *= size;
  return bytes;
}

int64_t InstructionPricer::roofline(int64_t flops, int64_t bytes,
                                    DType type) const {
  const Device &device = cluster.device;
  return std::max(picosecondsFor(flops, device.sustainedFlopsPerSecond(type)),
                  picosecondsFor(bytes, device.memoryBytesPerSecond,
                                 device.memoryEfficiency));
}

int64_t InstructionPricer::callPicoseconds(
    const std::string &name, const std::vector<TensorType> &operands,
    const std::vector<TensorType> &results) const {
  if (isViewCall(name))
    return 0;
  CallCost cost = callCost(name, operands, results);
  // The arithmetic is done in the type of the first floating tensor: integer
  // operands (ids, labels) only say where.
  DType type = DType::Float32;
  for (const std::vector<TensorType> *list : {&results, &operands})
    for (const TensorType &tensor : *list)
      if (isFloating(tensor.type))
        type = tensor.type;
  return roofline(cost.flops, cost.bytes, type) +
         cluster.device.launchPicoseconds;
}

int64_t InstructionPricer::collectivePicoseconds(const Instruction &instruction,
                                                 const RoleView &view,
                                                 int stage) const {
  int64_t ranks = 1, own = 0;
  for (int axis : instruction.axes)
    ranks *= mesh.axes[axis].size;
  int64_t width = byteWidth(view.type(instruction.operands[0]).type);
  if (instruction.kind == InstructionKind::AllReduce)
    return links.ringPicoseconds(
        stage, instruction.axes,
        allReduceBytes(view.bytes(instruction.operands[0]), ranks), 2);
  if (instruction.kind == InstructionKind::AllGather)
    return links.ringPicoseconds(
        stage, instruction.axes,
        allGatherBytes(view.bytes(instruction.operands[0]), ranks), 1);
  // The rank priced is the last of its group; which block is its own hardly
  // matters, so it is taken to be the last, too.
  std::vector<int64_t> blocks;
  for (const Expr &size : instruction.sendSizes)
    blocks.push_back(view.evaluate(size) * width);
  own = static_cast<int64_t>(blocks.size()) - 1;
  int64_t sent = exchangeBytes(blocks, own);
  if (instruction.kind == InstructionKind::ReduceScatter)
    return links.ringPicoseconds(stage, instruction.axes, sent, 1);
  return links.exchangePicoseconds(stage, instruction.axes, sent);
}

InstructionCost InstructionPricer::price(const Instruction &instruction,
                                         const RoleView &view,
                                         int stage) const {
  const Device &device = cluster.device;
  switch (instruction.kind) {
  case InstructionKind::Call: {
    std::vector<TensorType> operands, results;
    for (int32_t value : instruction.operands)
      operands.push_back(value == None ? TensorType{} : view.type(value));
    for (int32_t value : instruction.results)
      results.push_back(value == None ? TensorType{} : view.type(value));
    return {CostKind::Compute,
            callPicoseconds(instruction.name, operands, results),
            {}};
  }
  case InstructionKind::AllReduce:
  case InstructionKind::AllGather:
  case InstructionKind::ReduceScatter:
  case InstructionKind::AllToAll:
    return {CostKind::Collective,
            collectivePicoseconds(instruction, view, stage),
            {}};
  case InstructionKind::Send:
    return {CostKind::Send, device.launchPicoseconds,
            links.hop(stage, instruction.peerStage,
                      view.bytes(instruction.operands[0]))};
  case InstructionKind::Receive:
    return {CostKind::Send, device.launchPicoseconds, {}};
  case InstructionKind::Zero: {
    int64_t bytes = view.bytes(instruction.operands[0]);
    return {CostKind::Compute,
            roofline(0, bytes, DType::Float32) + device.launchPicoseconds,
            {}};
  }
  case InstructionKind::Update: {
    // Reads and writes: SGD p, g -> p; AdamW p, g, m, v -> p, m, v.
    int64_t passes = optimizer == OptimizerKind::AdamW ? 7 : 3;
    int64_t bytes = passes * view.bytes(instruction.operands[0]);
    return {CostKind::Compute,
            roofline(0, bytes, DType::Float32) + device.launchPicoseconds,
            {}};
  }
  case InstructionKind::Free:
    return {};
  }
  return {};
}

} // namespace monarch::planner
