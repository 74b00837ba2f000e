//===- StepMemory.cpp - peak bytes of a rank, by category -----------------===//
#include "planner/step/StepMemory.h"

#include "planner/step/StepTime.h"

#include <algorithm>

namespace monarch::planner {

double layersInFlight(const StepLayout &layout, int64_t stage, double layers) {
  const double stages = static_cast<double>(layout.pp);
  const double behind = stages - 1 - static_cast<double>(stage);
  const double count = layout.microBatches();
  if (layout.chunks > 1) {
    const double chunks = static_cast<double>(layout.chunks);
    const double kept = 2 * behind + (chunks - 1) * stages + 1;
    return std::min(kept, count * chunks) * layers / chunks;
  }
  if (layout.schedule == Schedule::ZeroBubble2)
    return std::min(2 * stages - 1, count) * layers;
  return std::min(behind + 1, count) * layers;
}

double MemoryModel::savedBytes(const BlockWork &block,
                               const StepLayout &layout) const {
  const BlockSplit split = splitOf(layout);
  double bytes = 0;
  const double boundary = block.boundary.at(split);
  const AttentionKernel kernel = layout.attention.value_or(target.attention);
  double attentionOut = 0, scores = 0;
  for (const AttentionWork &attention : block.forward.attentions) {
    double heads = attention.heads.at(split);
    attentionOut += heads * attention.sequence * attention.valueDim * 2;
    if (kernel == AttentionKernel::Spelled)
      scores += heads * attention.sequence * attention.keySequence *
                target.scoreBytes;
  }
  switch (layout.recompute) {
  case Recompute::Full:
    return boundary;
  case Recompute::PerOp: {
    // Attention's output and that of every second product, and the block's
    // two additions.
    double products = 0;
    for (const Product &product : block.forward.products)
      products += product.batch.at(split) * product.m.at(split) *
                  product.n.at(split) * 2;
    return 2 * boundary + attentionOut + products / 2;
  }
  case Recompute::CoreAttention:
    scores = 0;
    [[fallthrough]];
  case Recompute::None:
    for (const Extent &extent : block.saved)
      bytes += extent.at(split);
    return bytes + scores;
  }
  return bytes;
}

/// Gradients of the widest activation inside a layer, and of the stream.
double MemoryModel::backwardBytes(const BlockWork &block,
                                  const StepLayout &layout) const {
  const BlockSplit split = splitOf(layout);
  double widest = 0;
  for (const Product &product : block.forward.products)
    widest = std::max(widest, product.batch.at(split) * product.m.at(split) *
                                  product.n.at(split));
  if (layout.attention.value_or(target.attention) == AttentionKernel::Spelled)
    for (const AttentionWork &attention : block.forward.attentions)
      widest = std::max(widest, attention.heads.at(split) * attention.sequence *
                                    attention.keySequence);
  // Of its result and of its operand, two bytes each.
  return 4 * widest + 2 * block.boundary.at(split);
}

void MemoryModel::addStates(const StepLayout &layout, int64_t index,
                            StepMemory &memory) const {
  const BlockSplit split = splitOf(layout);
  const std::vector<int64_t> counts =
      layersOfStages(layout, static_cast<int64_t>(work.layers.size()));
  int64_t first = 0;
  for (int64_t stage = 0; stage < index; ++stage)
    first += counts[static_cast<size_t>(stage)];
  double dense = 0, experts = 0;
  for (int64_t i = first; i < first + counts[static_cast<size_t>(index)]; ++i) {
    const BlockWork &block = work.kinds[work.layers[static_cast<size_t>(i)]];
    dense += block.tensorParameters / split.tensor + block.wholeParameters;
    experts += block.expertParameters / split.expert;
  }
  const bool isFirst = index == 0, isLast = index == layout.pp - 1;
  if (isFirst)
    dense += work.embedding.parameters(split);
  if (isLast)
    dense += work.head.parameters(split);
  if (isLast && !isFirst && work.isTied)
    dense += work.embedding.tensorParameters / split.tensor;
  const double ranks = layout.shardGroup
                           ? static_cast<double>(layout.shardGroup)
                           : static_cast<double>(layout.dp * layout.cp);
  const double expertRanks =
      std::max(1.0, ranks / static_cast<double>(layout.ep));
  const bool isSharded = layout.sharding >= Sharding::Optimizer;
  const bool isWhole =
      !(target.isFullySharded && layout.sharding >= Sharding::Parameters);
  auto share = [&](bool divides) {
    return divides ? dense / ranks + experts / expertRanks : dense + experts;
  };
  memory.parameters = share(!isWhole) * target.restBytes;
  memory.gradients = share(!isWhole) * target.mainGradientBytes;
  memory.optimizer = share(isSharded) * target.optimizerStateBytes;
  if (!isWhole) {
    const double layer = (work.kinds[work.layers.back()].parameters(split));
    const double table = work.embedding.tensorParameters / split.tensor;
    // Two layers gathered in 16 bits, in and out of the buffer; gradients of
    // two in 32 bits before they are reduced; the table.
    memory.gathered = layer * (2 * 2 * 2 + 2 * 4) + table * 2;
  }
}

StepMemory MemoryModel::stage(const StepLayout &layout, int64_t index) const {
  StepMemory memory;
  memory.stage = index;
  addStates(layout, index, memory);
  const BlockSplit split = splitOf(layout);
  const std::vector<int64_t> counts =
      layersOfStages(layout, static_cast<int64_t>(work.layers.size()));
  const double layers = static_cast<double>(counts[static_cast<size_t>(index)]);
  const BlockWork &block = work.kinds[work.layers.back()];
  const double boundary = block.boundary.at(split);
  const double inFlight = layersInFlight(layout, index, layers);
  memory.activations = inFlight * savedBytes(block, layout);
  if (layout.recompute == Recompute::Full) {
    // Each micro-batch also keeps what the stage sends on.
    memory.activations += inFlight / layers * boundary;
    StepLayout whole = layout;
    whole.recompute = Recompute::None;
    memory.layer = savedBytes(block, whole) + 2 * boundary;
  } else if (layout.recompute == Recompute::PerOp) {
    StepLayout whole = layout;
    whole.recompute = Recompute::None;
    memory.layer = savedBytes(block, whole);
  }
  if (layout.recompute == Recompute::None ||
      layout.recompute == Recompute::CoreAttention)
    memory.layer = backwardBytes(block, layout);
  if (index == layout.pp - 1)
    memory.logits =
        split.rows * work.sequence / split.context * work.vocabulary /
        split.tensor *
        (layout.chunks > 1 ? target.chunkedLogitBytes : target.logitBytes);
  memory.total = memory.parameters + memory.gradients + memory.optimizer +
                 memory.gathered + memory.activations +
                 std::max(memory.logits, memory.layer);
  return memory;
}

StepMemory MemoryModel::price(const StepLayout &layout, bool onlyLast) const {
  if (onlyLast)
    return stage(layout, layout.pp - 1);
  StepMemory fullest;
  for (int64_t index = 0; index < layout.pp; ++index) {
    StepMemory own = stage(layout, index);
    if (own.total > fullest.total)
      fullest = own;
  }
  return fullest;
}

StepMemory MemoryModel::steady(const StepLayout &layout) const {
  StepMemory memory;
  memory.stage = layout.pp - 1;
  addStates(layout, memory.stage, memory);
  memory.gathered = 0;
  memory.total = memory.parameters + memory.gradients + memory.optimizer;
  return memory;
}

double MemoryModel::overhead(MemoryKind kind, const StepMemory &memory) const {
  constexpr double GiB = 1024.0 * 1024 * 1024;
  switch (kind) {
  case MemoryKind::Allocated:
    return 0;
  case MemoryKind::Reserved:
    return target.fragmentation *
           (memory.activations + std::max(memory.logits, memory.layer));
  case MemoryKind::Driver:
    return target.contextGiB * GiB +
           target.fragmentation *
               (memory.activations + std::max(memory.logits, memory.layer));
  }
  return 0;
}

} // namespace monarch::planner
