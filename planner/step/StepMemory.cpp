//===- StepMemory.cpp - peak bytes of a rank, by category -----------------===//
#include "planner/step/StepMemory.h"

#include "planner/step/StepTime.h"

#include <algorithm>
#include <cmath>

namespace monarch::planner {

double layersInFlight(const StepLayout &layout, int64_t stage, double layers) {
  const double stages = static_cast<double>(layout.pp);
  const double behind = stages - 1 - static_cast<double>(stage);
  const double count = layout.microBatches();
  // Micro-batches in flight, of the papers' tables: stages that postpone weight
  // gradients hold as many as the first.
  switch (layout.schedule) {
  case Schedule::GPipe:
    return count * layers;
  case Schedule::ZeroBubble1:
  case Schedule::ZeroBubbleV:
    return std::min(stages, count) * layers;
  case Schedule::ZeroBubble2:
    return std::min(2 * stages - 1, count) * layers;
  case Schedule::VHalf:
    return std::min(std::floor((stages + 2) / 2), count) * layers;
  case Schedule::OneForwardOneBackward:
    break;
  }
  if (layout.chunks > 1) {
    const double chunks = static_cast<double>(layout.chunks);
    const double kept = 2 * behind + (chunks - 1) * stages + 1;
    return std::min(kept, count * chunks) * layers / chunks;
  }
  return std::min(behind + 1, count) * layers;
}

double MemoryModel::savedBytes(const BlockWork &block, const StepLayout &layout,
                               Recompute recompute) const {
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
  switch (recompute) {
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

StageHolds MemoryModel::holdsOf(const StepLayout &layout, int64_t index) const {
  const BlockSplit split = splitOf(layout);
  const StageLayers own = layersOn(
      layout,
      static_cast<int64_t>(work.layers.size()))[static_cast<size_t>(index)];
  StageHolds holds;
  holds.layers = static_cast<double>(own.count + own.backCount);
  own.forEach([&](size_t layer) {
    const BlockWork &block = work.kinds[work.layers[layer]];
    holds.dense += block.denseParameters(split);
    holds.experts += block.expertParameters / split.expert;
  });
  const bool isFirst = index == 0, isLast = index == layout.lastStage();
  if (isFirst)
    holds.dense += work.embedding.parameters(split);
  if (isLast)
    holds.dense += work.head.parameters(split);
  if (isLast && !isFirst && work.isTied)
    holds.dense += work.embedding.tensorParameters / split.tensor;
  return holds;
}

void MemoryModel::addStates(const StepLayout &layout, const StageHolds &holds,
                            StepMemory &memory) const {
  const double ranks = layout.shardGroup
                           ? static_cast<double>(layout.shardGroup)
                           : static_cast<double>(layout.dp * layout.cp);
  const double expertRanks =
      std::max(1.0, ranks / static_cast<double>(layout.ep));
  const bool isSharded = layout.sharding >= Sharding::Optimizer;
  const bool isWhole =
      !(target.isFullySharded && layout.sharding >= Sharding::Parameters);
  auto share = [&](bool divides) {
    return divides ? holds.dense / ranks + holds.experts / expertRanks
                   : holds.dense + holds.experts;
  };
  memory.parameters = share(!isWhole) * target.restBytes;
  memory.gradients = share(!isWhole) * target.mainGradientBytes;
  memory.optimizer = layout.offloadsOptimizer
                         ? 0
                         : share(isSharded) * target.optimizerStateBytes;
  if (!isWhole) {
    const BlockSplit split = splitOf(layout);
    const double layer = (work.kinds[work.layers.back()].parameters(split));
    const double table = work.embedding.tensorParameters / split.tensor;
    // Two layers gathered in 16 bits, in and out of the buffer; gradients of
    // two in 32 bits before they are reduced; the table.
    memory.gathered = layer * (2 * 2 * 2 + 2 * 4) + table * 2;
  }
}

LayerBytes MemoryModel::layerBytes(const StepLayout &layout,
                                   Recompute recompute) const {
  const BlockSplit split = splitOf(layout);
  const BlockWork &block = work.kinds[work.layers.back()];
  LayerBytes bytes;
  bytes.boundary = block.boundary.at(split);
  bytes.saved = savedBytes(block, layout, recompute);
  switch (recompute) {
  case Recompute::Full:
    bytes.transient =
        savedBytes(block, layout, Recompute::None) + 2 * bytes.boundary;
    break;
  case Recompute::PerOp:
    bytes.transient = savedBytes(block, layout, Recompute::None);
    break;
  case Recompute::CoreAttention:
  case Recompute::None:
    bytes.transient = backwardBytes(block, layout);
    break;
  }
  bytes.logits =
      split.rows * work.sequence / split.context * work.vocabulary /
      split.tensor *
      (layout.chunks > 1 ? target.chunkedLogitBytes : target.logitBytes);
  return bytes;
}

StepMemory MemoryModel::stageOf(const StepLayout &layout, int64_t index,
                                Recompute recompute, const LayerBytes &bytes,
                                const StageHolds &holds) const {
  StepMemory memory;
  memory.stage = index;
  addStates(layout, holds, memory);
  memory.activations =
      layersInFlight(layout, index, holds.layers) * bytes.saved;
  // Each micro-batch also keeps what the stage sends on.
  if (recompute == Recompute::Full)
    memory.activations += layersInFlight(layout, index, 1) * bytes.boundary;
  memory.layer = bytes.transient;
  if (index == layout.lastStage())
    memory.logits = bytes.logits;
  memory.total = memory.parameters + memory.gradients + memory.optimizer +
                 memory.gathered + memory.activations +
                 std::max(memory.logits, memory.layer);
  return memory;
}

StepMemory MemoryModel::stage(const StepLayout &layout, int64_t index) const {
  const Recompute recompute = layout.recomputeOf(static_cast<size_t>(index));
  return stageOf(layout, index, recompute, layerBytes(layout, recompute),
                 holdsOf(layout, index));
}

StepMemory MemoryModel::price(const StepLayout &layout, bool onlyLast) const {
  if (onlyLast)
    return stage(layout, layout.lastStage());
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
  memory.stage = layout.lastStage();
  addStates(layout, holdsOf(layout, memory.stage), memory);
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
