//===- LayoutSpace.cpp - every layout that a target can express -----------===//
#include "planner/choose/LayoutSpace.h"

#include <algorithm>

namespace monarch::planner {

std::vector<int64_t> divisorsOf(int64_t number) {
  std::vector<int64_t> low, high;
  for (int64_t factor = 1; factor * factor <= number; ++factor)
    if (number % factor == 0) {
      low.push_back(factor);
      if (factor != number / factor)
        high.push_back(number / factor);
    }
  low.insert(low.end(), high.rbegin(), high.rend());
  return low;
}

static bool isAllowed(const std::optional<int64_t> &pin, int64_t value) {
  return !pin || *pin == value;
}

LayoutSpace::LayoutSpace(const ModelWork &work, const Machine &machine,
                         const Target &target, const LayoutRequest &request)
    : work(work), machine(machine), target(target), request(request) {
  const std::optional<Recompute> pin = request.pins.recompute;
  for (Recompute mode : {Recompute::None, Recompute::CoreAttention,
                         Recompute::PerOp, Recompute::Full}) {
    // Fused attention keeps no scores that could be made again; only eager
    // modules let a user choose op by op, and call that selective as well.
    const bool isPerOp = !target.style.hasOwnModules;
    const bool exists = (mode != Recompute::CoreAttention ||
                         (target.attention == AttentionKernel::Spelled &&
                          target.hasSelectiveRecompute) ||
                         (pin == mode && !isPerOp)) &&
                        (mode != Recompute::PerOp || isPerOp);
    const bool isAsked = !pin || *pin == mode ||
                         (pin == Recompute::CoreAttention &&
                          mode == Recompute::PerOp && isPerOp);
    if (exists && isAsked)
      recomputeModes.push_back(mode);
  }
  const LayoutPins &pins = request.pins;
  const int64_t layers = static_cast<int64_t>(work.layers.size());
  const int64_t experts = expertCount(work);
  for (int64_t tp : divisorsOf(machine.devices)) {
    if (!isAllowed(pins.tp, tp))
      continue;
    for (int64_t cp : divisorsOf(machine.devices / tp)) {
      if (!isAllowed(pins.cp, cp) || (cp > 1 && !target.hasContext))
        continue;
      for (int64_t pp : divisorsOf(machine.devices / (tp * cp))) {
        if (!isAllowed(pins.pp, pp) || pp > layers)
          continue;
        StepLayout layout;
        layout.tp = tp;
        layout.cp = cp;
        layout.pp = pp;
        layout.dp = machine.devices / (tp * cp * pp);
        if (!isAllowed(pins.dp, layout.dp))
          continue;
        layout.globalBatch = request.globalBatch;
        layout.precision = request.precision;
        for (int64_t ep :
             experts ? divisorsOf(experts) : std::vector<int64_t>{1}) {
          layout.ep = ep;
          if (isAllowed(pins.ep, ep))
            addDegrees(layout);
        }
      }
    }
  }
}

void LayoutSpace::addDegrees(StepLayout layout) {
  // Larger ones fill no device better.
  constexpr int64_t LargestMicroBatch = 64;
  // Variants say how a fully sharded target shards.
  if (target.isFullySharded)
    layout.sharding = Sharding::Parameters;
  if (!layoutViolations(work, machine, target, layout).empty())
    return;
  for (int64_t rows : divisorsOf(layout.globalBatch / layout.dp)) {
    const bool isPinned = request.pins.microBatch.has_value();
    if (!isAllowed(request.pins.microBatch, rows) ||
        (rows > LargestMicroBatch && !isPinned))
      continue;
    layout.microBatch = rows;
    for (bool isSequenceParallel : {false, true}) {
      if (isSequenceParallel && (layout.tp == 1 || !target.hasSequence))
        continue;
      const std::optional<bool> &pin = request.pins.isSequenceParallel;
      if (pin && layout.tp > 1 && *pin != isSequenceParallel)
        continue;
      layout.isSequenceParallel = isSequenceParallel;
      all.push_back(layout);
    }
  }
}

std::vector<LayoutVariant>
LayoutSpace::variants(const StepLayout &degrees) const {
  const LayoutPins &pins = request.pins;
  const int64_t layers = static_cast<int64_t>(work.layers.size());
  const int64_t ranks = degrees.dp * degrees.cp;
  const int64_t microBatches =
      degrees.globalBatch / (degrees.dp * degrees.microBatch);
  std::vector<std::pair<int64_t, Schedule>> orders;
  for (int64_t chunks = 1; chunks * degrees.pp <= layers; ++chunks) {
    if (!isAllowed(pins.chunks, chunks))
      continue;
    const bool canInterleave = target.hasInterleaving &&
                               degrees.pp >= target.leastInterleavedStages &&
                               microBatches % degrees.pp == 0;
    for (Schedule schedule : Schedules) {
      const bool isPlain = schedule == Schedule::OneForwardOneBackward;
      // 1F1B takes no longer than GPipe and holds no more.
      const bool isWanted =
          pins.schedule
              ? *pins.schedule == schedule
              : isPlain || (degrees.pp > 1 && schedule != Schedule::GPipe);
      const bool isShaped = isPlain              ? chunks == 1 || canInterleave
                            : isFolded(schedule) ? chunks == 2 && degrees.pp > 1
                                                 : chunks == 1;
      StepLayout layout = degrees;
      layout.chunks = chunks;
      layout.schedule = schedule;
      if (isWanted && isShaped && offers(target, schedule) &&
          !fixedCuts(layout).empty())
        orders.emplace_back(chunks, schedule);
    }
  }
  std::vector<std::pair<Sharding, int64_t>> shardings;
  for (Sharding sharding : {Sharding::None, Sharding::Optimizer,
                            Sharding::Gradients, Sharding::Parameters}) {
    // A fully sharded target gathers parameters whatever else it shards;
    // others shard the optimizer's state or nothing.
    const bool exists =
        target.isFullySharded
            ? sharding == Sharding::Parameters
            : sharding <= Sharding::Optimizer && sharding <= target.maxSharding;
    if (!exists || (pins.sharding && *pins.sharding != sharding) ||
        (sharding == Sharding::Optimizer && ranks == 1 && !pins.sharding))
      continue;
    const bool hasGroups = sharding != Sharding::None &&
                           (target.isFullySharded || target.broadcastsShards);
    for (int64_t group : divisorsOf(ranks)) {
      const int64_t size = group == ranks ? 0 : group;
      const bool isWhole = size == 0;
      if ((isWhole || (hasGroups && group > 1)) &&
          (isAllowed(pins.shardGroup, size) ||
           (isWhole && pins.shardGroup == ranks)))
        shardings.emplace_back(sharding, size);
    }
  }
  std::vector<LayoutVariant> list;
  for (auto [chunks, schedule] : orders)
    for (auto [sharding, group] : shardings)
      for (bool offloads : {false, true}) {
        const bool exists =
            !offloads || (target.hasOffload && sharding >= Sharding::Optimizer);
        if (exists && pins.offloadsOptimizer.value_or(offloads) == offloads)
          list.push_back({chunks, schedule, sharding, group, offloads});
      }
  return list;
}

bool LayoutSpace::hasOneValue(std::string_view name) const {
  if (name == "cp")
    return !target.hasContext;
  if (name == "ep")
    return !target.hasExpert || expertCount(work) == 0;
  if (name == "tp")
    return !target.hasTensor;
  if (name == "pp")
    return !target.hasPipeline;
  if (name == "vpp")
    return !target.hasPipeline || !target.hasInterleaving;
  if (name == "sp")
    return !target.hasSequence;
  if (name == "schedule")
    return std::none_of(
        std::begin(Schedules) + 1, std::end(Schedules),
        [&](Schedule schedule) { return offers(target, schedule); });
  if (name == "zero")
    return target.isFullySharded;
  if (name == "offload")
    return !target.hasOffload;
  if (name == "dp_shard")
    return !target.isFullySharded && !target.broadcastsShards;
  return false;
}

std::vector<std::vector<int64_t>>
LayoutSpace::fixedCuts(const StepLayout &layout) const {
  const std::vector<int64_t> &pinned = request.pins.stageLayers;
  const int64_t layers = static_cast<int64_t>(work.layers.size());
  const int64_t pp = layout.pp, chunks = layout.chunks;
  if (!pinned.empty()) {
    int64_t sum = 0;
    for (int64_t count : pinned)
      sum += count;
    const bool fits = static_cast<int64_t>(pinned.size()) == pp &&
                      sum == layers &&
                      *std::min_element(pinned.begin(), pinned.end()) >= 0;
    if (!fits)
      return {};
    return {pinned};
  }
  if (chunks == 1)
    return {{}};
  std::vector<std::vector<int64_t>> cuts;
  for (int64_t counted = 0; counted <= 2; ++counted) {
    const int64_t total = layers + counted;
    if (total % (pp * chunks) != 0)
      continue;
    std::vector<int64_t> cut(static_cast<size_t>(pp), total / pp);
    if (counted >= 1)
      --cut[static_cast<size_t>(layout.lastStage())];
    if (counted == 2)
      --cut.front();
    cuts.push_back(counted == 0 ? std::vector<int64_t>{} : cut);
  }
  return cuts;
}

} // namespace monarch::planner
