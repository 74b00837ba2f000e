//===- StepTime.cpp - seconds of a training step --------------------------===//
#include "planner/step/StepTime.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace monarch::planner {

double StepLayout::microBatches() const {
  return std::max(1.0, static_cast<double>(globalBatch) /
                           static_cast<double>(dp * microBatch));
}

BlockSplit splitOf(const StepLayout &layout) {
  BlockSplit split;
  split.rows = static_cast<double>(layout.microBatch);
  split.tensor = static_cast<double>(layout.tp);
  split.context = static_cast<double>(layout.cp);
  split.expert = static_cast<double>(layout.ep);
  split.isSequenceParallel = layout.isSequenceParallel;
  return split;
}

std::vector<int64_t> layersOfStages(const StepLayout &layout, int64_t layers) {
  if (!layout.stageLayers.empty())
    return layout.stageLayers;
  std::vector<int64_t> counts(static_cast<size_t>(layout.pp),
                              layers / layout.pp);
  for (int64_t stage = 0; stage < layers % layout.pp; ++stage)
    ++counts[static_cast<size_t>(stage)];
  return counts;
}

std::vector<StageLayers> layersOn(const StepLayout &layout, int64_t layers) {
  const std::vector<int64_t> counts = layersOfStages(layout, layers);
  std::vector<StageLayers> list;
  int64_t first = 0, end = layers;
  for (int64_t count : counts) {
    const int64_t back = isFolded(layout.schedule) ? count / 2 : 0;
    end -= back;
    list.push_back({first, count - back, end, back});
    first += count - back;
  }
  return list;
}

bool offers(const Target &target, Schedule schedule) {
  switch (schedule) {
  case Schedule::OneForwardOneBackward:
    return true;
  case Schedule::ZeroBubble1:
  case Schedule::ZeroBubble2:
    return target.hasZeroBubble;
  case Schedule::GPipe:
    return target.hasGPipe;
  case Schedule::ZeroBubbleV:
    return target.hasZeroBubbleV;
  case Schedule::VHalf:
    return target.hasVHalf;
  }
  return false;
}

StepModel::StepModel(const ModelWork &work, const Machine &machine,
                     const Target &target, const Constants &constants,
                     double tensorDelaySeconds)
    : work(work), machine(machine), target(target), constants(constants),
      kernels(machine.device, constants),
      network(machine, constants, target.hasOldRings),
      blocks(kernels, network, target, tensorDelaySeconds) {}

/// Device and host work side by side; the slower one shows, and a little of the
/// other where they are close.
static double slower(double device, double host) {
  return std::pow(std::pow(device, 4) + std::pow(host, 4), 0.25);
}

StepModel::Layer StepModel::layer(const BlockWork &block,
                                  const StepLayout &layout,
                                  Recompute recompute) const {
  Layer layer;
  layer.time = blocks.price(block, splitOf(layout), layout.precision,
                            layout.attention.value_or(target.attention));
  const BlockTime &time = layer.time;
  double again = 0, launches = time.backwardLaunches;
  switch (recompute) {
  case Recompute::Full:
    again = time.forward + time.forwardExchange;
    launches += time.forwardLaunches;
    break;
  case Recompute::PerOp:
    again = time.forward - time.attentionForward - time.products / 2;
    launches += 0.6 * time.forwardLaunches;
    break;
  case Recompute::CoreAttention:
    again = time.attentionForward;
    launches += 6;
    break;
  case Recompute::None:
    break;
  }
  if (layout.recomputesMlp)
    again += 0.6 * time.products;
  layer.forward = slower(time.forward + time.forwardExchange,
                         time.forwardLaunches * constants.launchSeconds);
  layer.backward = slower(time.backward + time.backwardExchange + again,
                          launches * constants.launchSeconds);
  return layer;
}

const StepModel::Blocks &StepModel::blocksOf(const StepLayout &layout,
                                             Recompute recompute) const {
  const AttentionKernel kernel = layout.attention.value_or(target.attention);
  const BlockSplit split = splitOf(layout);
  auto [entry, isNew] = priced.try_emplace(
      {split, layout.precision, kernel, recompute, layout.recomputesMlp});
  Blocks &found = entry->second;
  if (!isNew)
    return found;
  for (const BlockWork &block : work.kinds)
    found.kinds.push_back(layer(block, layout, recompute));
  auto bothWays = [&](const BlockWork &block) {
    BlockTime own = blocks.price(block, split, Precision::Half, kernel);
    return own.forward + own.backward + own.forwardExchange +
           own.backwardExchange;
  };
  found.embedding = bothWays(work.embedding);
  found.head = bothWays(work.head);
  return found;
}

double StepModel::sendSeconds(const StepLayout &layout) const {
  if (layout.pp <= 1)
    return 0;
  BlockSplit split = splitOf(layout);
  split.isSequenceParallel = false;
  const double whole = work.head.boundary.at(split);
  const double ranks = static_cast<double>(layout.tp * layout.dp * layout.cp);
  const double flows =
      std::min(static_cast<double>(machine.devicesPerNode), ranks);
  const bool isParted = layout.isSequenceParallel || target.scattersSends;
  double one = network.send(
      isParted ? whole / static_cast<double>(layout.tp) : whole, flows);
  if (target.scattersSends && !layout.isSequenceParallel)
    one += network.ring(Collective::AllGather, whole,
                        static_cast<double>(layout.tp), 1);
  return 2 * one * static_cast<double>(layout.chunks) *
         (1 - target.pipelineOverlap);
}

std::vector<StepModel::Stage> StepModel::stages(const StepLayout &layout,
                                                double sends) const {
  const BlockSplit split = splitOf(layout);
  const std::vector<StageLayers> places =
      layersOn(layout, static_cast<int64_t>(work.layers.size()));
  const Blocks &shared = blocksOf(layout);
  std::vector<Stage> list(places.size());
  for (size_t index = 0; index < list.size(); ++index) {
    Stage &stage = list[index];
    const std::vector<Layer> &kinds =
        layout.stageRecompute.empty()
            ? shared.kinds
            : blocksOf(layout, layout.recomputeOf(index)).kinds;
    places[index].forEach([&](size_t layer) {
      const int kind = work.layers[layer];
      stage.forward += kinds[kind].forward;
      stage.backward += kinds[kind].backward;
      stage.weights += kinds[kind].time.products;
      stage.layers += 1;
      const BlockWork &block = work.kinds[kind];
      stage.parameters += block.denseParameters(split);
      stage.expertParameters += block.expertParameters / split.expert;
    });
    stage.seconds = stage.forward + stage.backward + sends;
  }
  auto add = [&](Stage &stage, const BlockWork &block, double seconds) {
    stage.seconds += seconds;
    stage.parameters += block.denseParameters(split);
  };
  add(list.front(), work.embedding, shared.embedding);
  add(list[static_cast<size_t>(layout.lastStage())], work.head, shared.head);
  if (work.isTied && layout.lastStage() > 0)
    list.back().parameters += work.embedding.tensorParameters / split.tensor;
  if (!machine.slowRanks.empty())
    slowDown(layout, sends, list);
  return list;
}

/// All of a stage waits for its slowest rank.
void StepModel::slowDown(const StepLayout &layout, double sends,
                         std::vector<Stage> &list) const {
  const int64_t ranksOfStage = layout.tp * layout.cp * layout.dp;
  std::vector<double> factors(list.size(), 1);
  for (const auto &[rank, factor] : machine.slowRanks) {
    double &own = factors[static_cast<size_t>(rank / ranksOfStage)];
    own = std::max(own, factor);
  }
  for (size_t index = 0; index < list.size(); ++index) {
    Stage &stage = list[index];
    stage.forward *= factors[index];
    stage.backward *= factors[index];
    stage.weights *= factors[index];
    stage.seconds = sends + (stage.seconds - sends) * factors[index];
  }
}

PipelineShape StepModel::pipeline(const StepLayout &layout) const {
  const double sends = sendSeconds(layout);
  PipelineShape shape;
  for (const Stage &stage : stages(layout, sends)) {
    // Embedding and head: a third of their work is forward.
    const double rest = stage.seconds - stage.forward - stage.backward - sends;
    shape.forward.push_back(stage.forward + rest / 3 + sends / 2);
    shape.backward.push_back(stage.backward + rest * 2 / 3 + sends / 2);
    shape.weights.push_back(std::min(stage.weights, stage.backward));
  }
  shape.schedule = layout.schedule;
  shape.microBatches = static_cast<int64_t>(layout.microBatches());
  shape.chunks = layout.chunks;
  return shape;
}

StageFacts StepModel::factsOf(const StepLayout &layout) const {
  const std::vector<Stage> list = stages(layout, sendSeconds(layout));
  StageFacts facts;
  for (const Stage &stage : list) {
    facts.slowest = std::max(facts.slowest, stage.seconds);
    facts.sum += stage.seconds;
    facts.forward = std::max(facts.forward, stage.forward);
    facts.backward = std::max(facts.backward, stage.backward);
    facts.parameters = std::max(facts.parameters, stage.parameters);
    facts.experts = std::max(facts.experts, stage.expertParameters);
  }
  facts.firstLayers = list.front().layers;
  facts.firstParameters = list.front().parameters;
  facts.firstExperts = list.front().expertParameters;
  return facts;
}

StepTime StepModel::price(const StepLayout &layout) const {
  return combine(layout, blocksOf(layout), factsOf(layout),
                 sendSeconds(layout));
}

StepTime StepModel::simulated(const StepLayout &layout) const {
  StageFacts facts = factsOf(layout);
  if (isSimulated(layout))
    facts.pipeline = pipelineSeconds(pipeline(layout));
  return combine(layout, blocksOf(layout), facts, sendSeconds(layout));
}

/// With forward, gradients of inputs and of weights equally long: ZB-H1 leaves
/// a third of 1F1B's bubble, V-Half a half, ZB-H2 and V-ZB none (tables of both
/// papers); what measured rows of the latter two show is a thirtieth. Too few
/// micro-batches to fill the pipeline leave more: one pass down the stages and
/// one up show, less one step for each further micro-batch.
double rampShare(const StepLayout &layout) {
  const double behind = static_cast<double>(layout.pp - 1);
  auto atLeast = [&](double share) {
    return behind == 0
               ? share
               : std::max(share, (2 * behind - layout.microBatches() + 1) /
                                     (3 * behind));
  };
  switch (layout.schedule) {
  case Schedule::OneForwardOneBackward:
    return 1 / static_cast<double>(layout.chunks);
  case Schedule::GPipe:
    return 1;
  case Schedule::ZeroBubble1:
    return atLeast(0.33);
  case Schedule::ZeroBubble2:
  case Schedule::ZeroBubbleV:
    return atLeast(0.03);
  case Schedule::VHalf:
    return atLeast(0.5);
  }
  return 1;
}

StepTime StepModel::combine(const StepLayout &layout, const Blocks &shared,
                            const StageFacts &facts, double sends) const {
  StepTime time;
  const Layer &usual = shared.kinds[work.layers.back()];
  time.layer = usual.time;
  time.layerForward = usual.forward;
  time.layerBackward = usual.backward;
  const double host = usual.time.forwardLaunches * constants.launchSeconds;
  const double hostShare = host / usual.forward;
  time.hostShare = hostShare * hostShare * hostShare * hostShare;
  const double count = layout.microBatches();
  double pipeline = count * facts.slowest;
  pipeline += rampShare(layout) * (facts.sum - facts.slowest);
  pipeline = std::max(pipeline, facts.pipeline);
  // A device that waits is cooler, and then faster.
  const double idle =
      std::max(0.0, 1 - count * (facts.slowest - sends) / pipeline);
  pipeline *= 1 - constants.powerHeadroom * idle;
  time.stage = count * facts.slowest;
  time.bubble = pipeline - time.stage;
  time.exchange =
      count * (time.layer.forwardExchange + time.layer.backwardExchange) *
      static_cast<double>(work.layers.size()) / static_cast<double>(layout.pp);
  time.sends = sends * count;
  if (target.isFullySharded)
    addFullySharded(layout, facts, time);
  else
    addReplicated(layout, facts, time);
  time.seconds = time.stage + time.bubble + time.data + time.optimizer +
                 constants.stepSeconds;
  return time;
}

double StepModel::hostUpdate(double elements) const {
  const int64_t ranks = std::min(machine.devicesPerNode, machine.devices);
  return elements * static_cast<double>(ranks) * constants.hostUpdateSeconds;
}

void StepModel::addFullySharded(const StepLayout &layout,
                                const StageFacts &facts, StepTime &time) const {
  const double ranks = static_cast<double>(layout.dp * layout.cp);
  const double stride = static_cast<double>(layout.tp);
  const double count = layout.microBatches();
  const double layers = std::max(1.0, facts.firstLayers);
  double own =
      facts.firstParameters - work.embedding.parameters(splitOf(layout));
  if (layout.lastStage() == 0)
    own -= work.head.parameters(splitOf(layout));
  const double perLayer = own / layers;
  const double experts = facts.firstExperts / layers;
  auto ring = [&](Collective kind, double bytes) {
    if (layout.shardGroup == 0)
      return network.ring(kind, bytes, ranks, stride);
    const double group = static_cast<double>(layout.shardGroup);
    double seconds = network.ring(kind, bytes, group, stride);
    if (kind == Collective::ReduceScatter)
      seconds += network.ring(Collective::AllReduce, bytes / group,
                              ranks / group, stride * group);
    return seconds;
  };
  double gather = ring(Collective::AllGather, perLayer * target.weightBytes);
  double reduce =
      ring(Collective::ReduceScatter, perLayer * target.gradientBytes);
  if (experts > 0) {
    const double copies = std::max(1.0, ranks / static_cast<double>(layout.ep));
    const double apart = stride * static_cast<double>(layout.ep);
    gather += network.ring(Collective::AllGather, experts * target.weightBytes,
                           copies, apart);
    reduce += network.ring(Collective::ReduceScatter,
                           experts * target.gradientBytes, copies, apart);
  }
  const double forward = time.layerForward, backward = time.layerBackward;
  if (target.gathersAlone) {
    // Every rank pulls the whole layer through its own NIC.
    const double rate = network.nicRate() / network.domain();
    gather = perLayer * target.weightBytes / rate;
    reduce = perLayer * target.gradientBytes / rate;
    const double compute = forward + backward, moved = 2 * gather + reduce;
    time.data +=
        count * layers *
        (std::max(compute, moved) + 0.5 * std::min(compute, moved) - compute);
  } else {
    const double hiddenForward = std::min(gather, target.dataOverlap * forward);
    const double hiddenBackward =
        std::min(gather + reduce, target.dataOverlap * backward);
    time.data +=
        count * layers *
        ((gather - hiddenForward) + (gather + reduce - hiddenBackward) +
         constants.overlapLoss * (hiddenForward + hiddenBackward));
  }
  const double table = work.embedding.tensorParameters / stride;
  time.data += 2 * count * ring(Collective::AllGather, 2 * table);
  const double total = facts.firstParameters + facts.firstExperts;
  time.optimizer = kernels.memory(total / ranks * target.optimizerBytes *
                                  constants.optimizerTraffic);
  if (layout.offloadsOptimizer)
    time.optimizer = hostUpdate(total / ranks);
}

void StepModel::addReplicated(const StepLayout &layout, const StageFacts &facts,
                              StepTime &time) const {
  const double ranks = static_cast<double>(layout.dp * layout.cp);
  const double stride = static_cast<double>(layout.tp);
  const double parameters = facts.parameters, experts = facts.experts;
  const double expertCopies =
      std::max(1.0, ranks / static_cast<double>(layout.ep));
  const double expertStride = stride * static_cast<double>(layout.ep);
  auto ring = [&](Collective kind, double bytesPerParameter) {
    return network.ring(kind, parameters * bytesPerParameter, ranks, stride) +
           network.ring(kind, experts * bytesPerParameter, expertCopies,
                        expertStride);
  };
  // What runs beside the last backward, or the first forward, of a step does
  // not show, but for its first and last bucket.
  constexpr double Shown = 0.1;
  auto exposed = [&](double seconds, double window) {
    return std::max(Shown * seconds, seconds - window);
  };
  const double chunks = static_cast<double>(layout.chunks);
  const double backwardWindow = target.dataOverlap * facts.backward / chunks;
  const double forwardWindow = target.dataOverlap * facts.forward / chunks;
  const bool isSharded = layout.sharding >= Sharding::Optimizer;
  const double all = parameters + experts;
  auto update = [&](double bytes) {
    return kernels.memory(bytes * constants.optimizerTraffic);
  };
  if (target.broadcastsShards) {
    const double group =
        layout.shardGroup ? static_cast<double>(layout.shardGroup) : ranks;
    time.data += exposed(ring(Collective::AllReduce, target.gradientBytes),
                         backwardWindow) +
                 network.ring(Collective::AllGather,
                              parameters * target.weightBytes, group, stride);
    time.optimizer = update(all / group * target.optimizerBytes);
  } else if (isSharded && target.dataOverlap > 0) {
    time.data +=
        exposed(ring(Collective::ReduceScatter, target.gradientBytes),
                backwardWindow) +
        exposed(ring(Collective::AllGather, target.weightBytes), forwardWindow);
    time.optimizer = update((parameters / ranks + experts / expertCopies) *
                            target.optimizerBytes) +
                     kernels.memory(all * 4);
  } else {
    time.data += exposed(ring(Collective::AllReduce, target.gradientBytes),
                         backwardWindow);
    if (isSharded) {
      time.data += ring(Collective::AllGather, target.weightBytes);
      time.optimizer =
          update(all / ranks * target.optimizerBytes) + kernels.memory(all * 8);
    } else {
      time.optimizer = update(all * target.optimizerBytes);
    }
  }
  if (layout.offloadsOptimizer)
    time.optimizer = hostUpdate(parameters / ranks + experts / expertCopies);
  if (layout.lastStage() > 0 && target.reducesTiedTable && work.isTied) {
    const double apart =
        std::max(static_cast<double>(layout.tp * layout.dp * layout.cp *
                                     (layout.pp - 1)),
                 network.domain());
    time.data += network.ring(Collective::AllReduce,
                              work.embedding.tensorParameters / stride *
                                  target.gradientBytes,
                              2, apart);
  }
}

} // namespace monarch::planner
