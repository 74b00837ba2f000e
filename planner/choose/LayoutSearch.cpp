//===- LayoutSearch.cpp - best first through the space of layouts ---------===//
#include "planner/choose/LayoutSearch.h"

#include "planner/choose/StageCut.h"

#include <algorithm>
#include <numeric>

namespace monarch::planner {

namespace {

constexpr double Never = std::numeric_limits<double>::infinity();

using FamilyKey = std::tuple<int64_t, int64_t, int64_t, int64_t, Sharding>;
FamilyKey familyOf(const StepLayout &layout) {
  return {layout.tp, layout.pp, layout.cp, layout.ep, layout.sharding};
}

} // namespace

LayoutSearch::LayoutSearch(const ModelWork &work, const Machine &machine,
                           const Target &target, const LayoutRequest &request)
    : work(work), target(target), slowRanks(machine.slowRanks),
      request(request), layouts(work, machine, target, request),
      model(work, machine, target, builtInConstants()), memory(work, target),
      usable(usableBytes(machine, target, request.headroom)),
      stepSeconds(builtInConstants().stepSeconds),
      kindCounts(work.kinds.size(), 0) {
  for (int kind : work.layers)
    ++kindCounts[static_cast<size_t>(kind)];
}

void LayoutSearch::apply(const LayoutVariant &variant, StepLayout &layout) {
  layout.chunks = variant.chunks;
  layout.schedule = variant.schedule;
  layout.sharding = variant.sharding;
  layout.shardGroup = variant.shardGroup;
  layout.offloadsOptimizer = variant.offloadsOptimizer;
}

StageHolds LayoutSearch::holdsOf(const StepLayout &layout, int64_t stage,
                                 int64_t first, int64_t count) const {
  const BlockSplit split = splitOf(layout);
  StageHolds holds;
  holds.layers = static_cast<double>(count);
  auto add = [&](int kind, double times) {
    const BlockWork &block = work.kinds[static_cast<size_t>(kind)];
    holds.dense += times * block.denseParameters(split);
    holds.experts += times * block.expertParameters / split.expert;
  };
  if (work.kinds.size() == 1)
    add(0, holds.layers);
  else
    for (int64_t i = first; i < first + count; ++i)
      add(work.layers[static_cast<size_t>(i)], 1);
  const bool isFirst = stage == 0, isLast = stage == layout.pp - 1;
  if (isFirst)
    holds.dense += work.embedding.denseParameters(split);
  if (isLast)
    holds.dense += work.head.denseParameters(split);
  if (isLast && !isFirst && work.isTied)
    holds.dense += work.embedding.tensorParameters / split.tensor;
  return holds;
}

double LayoutSearch::bytesOver(const StepLayout &layout,
                               const Shared &shared) const {
  const std::vector<int64_t> counts =
      layersOfStages(layout, static_cast<int64_t>(work.layers.size()));
  const LayerBytes &bytes =
      layout.chunks > 1 ? shared.chunkedBytes : shared.bytes;
  double most = 0;
  int64_t first = 0;
  for (int64_t stage = 0; stage < layout.pp; ++stage) {
    const int64_t count = counts[static_cast<size_t>(stage)];
    const StageHolds holds = isFolded(layout.schedule)
                                 ? memory.holdsOf(layout, stage)
                                 : holdsOf(layout, stage, first, count);
    const StepMemory own =
        memory.stageOf(layout, stage, layout.recompute, bytes, holds);
    most = std::max(most, own.total);
    first += count;
  }
  return most - usable;
}

std::vector<int64_t> LayoutSearch::bestCut(const StepLayout &layout,
                                           const Shared &shared,
                                           double mostElements) const {
  StageCutProblem problem;
  problem.stages = layout.pp;
  problem.layers = static_cast<int64_t>(work.layers.size());
  problem.slack = LayoutSpace::CutSlack;
  std::vector<double> before = {0};
  for (int kind : work.layers) {
    const StepModel::Layer &layer =
        shared.blocks->kinds[static_cast<size_t>(kind)];
    before.push_back(before.back() + layer.forward + layer.backward);
  }
  problem.seconds = [&](int64_t stage, int64_t first, int64_t count) {
    double seconds = before[static_cast<size_t>(first + count)] -
                     before[static_cast<size_t>(first)];
    if (stage == 0)
      seconds += shared.blocks->embedding;
    if (stage == layout.pp - 1)
      seconds += shared.blocks->head;
    return seconds;
  };
  problem.fits = [&](int64_t stage, int64_t first, int64_t count) {
    const StageHolds holds = holdsOf(layout, stage, first, count);
    const bool isCounted = stage == 0 || !target.isFullySharded;
    return (!isCounted || holds.dense + holds.experts <= mostElements) &&
           memory.stageOf(layout, stage, layout.recompute, shared.bytes, holds)
                   .total <= usable;
  };
  return cutStages(problem);
}

/// Elements of the stage that the reductions and the update wait for.
double LayoutSearch::mostElements(const StepLayout &layout,
                                  std::vector<int64_t> cut) const {
  if (cut.empty())
    cut = layersOfStages(layout, static_cast<int64_t>(work.layers.size()));
  double most = 0;
  int64_t first = 0;
  for (int64_t stage = 0; stage < layout.pp; ++stage) {
    const int64_t count = cut[static_cast<size_t>(stage)];
    const StageHolds holds = holdsOf(layout, stage, first, count);
    if (stage == 0 || !target.isFullySharded)
      most = std::max(most, holds.dense + holds.experts);
    first += count;
  }
  return most;
}

double LayoutSearch::pipelineSeconds(const StepLayout &layout) {
  const PipelineKey key{{layout.tp, layout.pp, layout.dp, layout.cp, layout.ep,
                         layout.chunks, layout.microBatch},
                        layout.recompute,
                        layout.isSequenceParallel,
                        layout.schedule,
                        layout.stageLayers};
  auto [entry, isNew] = pipelines.try_emplace(key, 0);
  if (isNew)
    entry->second = planner::pipelineSeconds(model.pipeline(layout));
  return entry->second;
}

std::optional<LayoutSearch::Found>
LayoutSearch::price(StepLayout &layout, const Shared &shared, double limit) {
  std::optional<Found> best;
  const double sends = model.sendSeconds(layout);
  bool isBalanced = false;
  // The slowest stage's seconds; 0 where it does not fit.
  auto tryCut = [&](std::vector<int64_t> cut) {
    layout.stageLayers = std::move(cut);
    const double over = bytesOver(layout, shared);
    lastOver = std::min(lastOver, over);
    if (over > 0)
      return 0.0;
    StageFacts facts = model.factsOf(layout);
    isBalanced =
        facts.slowest <= (shared.relaxed.slowest + sends) * (1 + 1e-12);
    auto seconds = [&] {
      return model.combine(layout, *shared.blocks, facts, sends).seconds;
    };
    Found found;
    found.seconds = seconds();
    if (isSimulated(layout) && found.seconds <= limit &&
        (!best || found.seconds < best->seconds)) {
      facts.pipeline = pipelineSeconds(layout);
      found.seconds = seconds();
    }
    found.layout = layout;
    if (!best || found.seconds < best->seconds)
      best = std::move(found);
    return facts.slowest;
  };
  lastOver = Never;
  for (std::vector<int64_t> &cut : layouts.fixedCuts(layout))
    tryCut(std::move(cut));
  if (!layouts.hasFreeCuts(layout.pp, layout.chunks)) {
    if (best)
      best->bound = best->seconds;
    layout.stageLayers.clear();
    return best;
  }
  // First for the slowest stage, then with ever less in the largest: a step
  // also reduces and updates what that one holds. Until nothing can be won.
  constexpr double Worth = 1e-9;
  StageFacts facts = shared.relaxed;
  facts.slowest += sends;
  facts.sum += sends * static_cast<double>(layout.pp);
  double most = Never, proven = Never;
  FirstLayers first;
  // Cuts that hold as much as this one, and less than those before it.
  auto settle = [&](const std::vector<int64_t> &cut) {
    first.least = static_cast<double>(cut.front());
    proven = std::min(proven, boundOf(layout, shared, facts, sends, first));
    first = {0, first.least};
    most = mostElements(layout, cut) * (1 - Worth);
  };
  if (isBalanced)
    settle(layersOfStages(layout, static_cast<int64_t>(work.layers.size())));
  while (true) {
    const double least = boundOf(layout, shared, facts, sends, first);
    if (least > limit || (best && best->seconds <= least * (1 + Worth))) {
      proven = std::min(proven, least);
      break;
    }
    layout.stageLayers.clear();
    const std::vector<int64_t> cut = bestCut(layout, shared, most);
    if (cut.empty())
      break;
    facts.slowest = std::max(facts.slowest, tryCut(cut));
    settle(cut);
  }
  layout.stageLayers.clear();
  if (best)
    best->bound = std::min(proven, best->seconds);
  return best;
}

std::optional<LayoutSearch::Found>
LayoutSearch::price(const StepLayout &degrees, Recompute recompute,
                    const LayoutVariant &variant) {
  StepLayout layout = degrees;
  layout.recompute = recompute;
  apply(variant, layout);
  return price(layout, sharedOf(degrees, recompute), Never);
}

int64_t LayoutSearch::boundAll() {
  int64_t count = 0;
  for (const StepLayout &degrees : layouts.degrees()) {
    StepLayout layout = degrees;
    const std::vector<LayoutVariant> variants = layouts.variants(degrees);
    for (Recompute recompute : layouts.recomputes()) {
      layout.recompute = recompute;
      const Shared shared = sharedOf(degrees, recompute);
      for (const LayoutVariant &variant : variants) {
        apply(variant, layout);
        count += bound(layout, shared) > 0;
      }
    }
  }
  return count;
}

LayoutSearch::Result LayoutSearch::run(size_t families, bool isFirstEnough) {
  Result result;
  struct Group {
    double bound;
    size_t index;
    bool operator<(const Group &other) const {
      return std::tie(bound, index) < std::tie(other.bound, other.index);
    }
  };
  std::vector<Group> groups;
  const std::vector<StepLayout> &all = layouts.degrees();
  const std::vector<Recompute> &modes = layouts.recomputes();
  if (modes.empty())
    return result;
  for (size_t index = 0; index < all.size(); ++index)
    // The first mode makes least again.
    groups.push_back(
        {degreesBound(all[index], sharedOf(all[index], modes.front())), index});
  std::sort(groups.begin(), groups.end());
  std::map<FamilyKey, Found> best;
  // The worst of the families that are wanted: what is above cannot matter.
  double limit = Never;
  auto setLimit = [&] {
    if (best.size() < families)
      return;
    std::vector<double> seconds;
    for (const auto &[key, found] : best)
      seconds.push_back(found.seconds);
    std::nth_element(seconds.begin(),
                     seconds.begin() + static_cast<ptrdiff_t>(families - 1),
                     seconds.end());
    limit = seconds[families - 1];
  };
  double least = Never;
  struct Candidate {
    double bound;
    size_t mode, variant;
  };
  std::vector<Candidate> candidates;
  std::vector<Shared> shared(modes.size());
  for (const Group &group : groups) {
    if (group.bound > limit)
      break;
    StepLayout layout = all[group.index];
    const std::vector<LayoutVariant> variants = layouts.variants(layout);
    candidates.clear();
    for (size_t mode = 0; mode < modes.size(); ++mode) {
      layout.recompute = modes[mode];
      shared[mode] = sharedOf(layout, modes[mode]);
      for (size_t index = 0; index < variants.size(); ++index) {
        apply(variants[index], layout);
        layout.stageLayers = request.pins.stageLayers;
        const double own = bound(layout, shared[mode]);
        ++result.bounded;
        if (own <= limit)
          candidates.push_back({own, mode, index});
      }
    }
    std::sort(candidates.begin(), candidates.end(),
              [](const Candidate &a, const Candidate &b) {
                return std::tie(a.bound, a.mode, a.variant) <
                       std::tie(b.bound, b.mode, b.variant);
              });
    for (const Candidate &candidate : candidates) {
      if (candidate.bound > limit)
        break;
      layout.recompute = modes[candidate.mode];
      apply(variants[candidate.variant], layout);
      ++result.priced;
      std::optional<Found> found = price(layout, shared[candidate.mode], limit);
      auto note = [&](Found &known) {
        known.bound = std::max(known.bound, candidate.bound);
        known.degrees = group.index;
        known.variant = candidate.mode * variants.size() + candidate.variant;
      };
      if (!found) {
        ++result.overMemory;
        Found large;
        large.layout = layout;
        large.seconds = candidate.bound;
        note(large);
        if (lastOver < result.closestOver || !result.closest) {
          result.closest = large;
          result.closestOver = lastOver;
        }
        if (!result.tooLarge || large.isBefore(*result.tooLarge))
          result.tooLarge = std::move(large);
        continue;
      }
      note(*found);
      least = std::min(least, found->bound);
      auto [entry, isNew] = best.try_emplace(familyOf(found->layout), *found);
      if (!isNew && found->isBefore(entry->second))
        entry->second = std::move(*found);
      setLimit();
      if (isFirstEnough)
        break;
    }
    if (isFirstEnough && !best.empty())
      break;
    if (request.onProgress) {
      SearchProgress progress{result.bounded, result.priced, 0, group.bound};
      for (const auto &[key, found] : best)
        if (progress.bestSeconds == 0 || found.seconds < progress.bestSeconds)
          progress.bestSeconds = found.seconds;
      if (!request.onProgress(progress)) {
        result.isComplete = false;
        // Degrees that were not opened are no faster than the next one's bound.
        least = std::min(least, group.bound);
        break;
      }
    }
  }
  for (auto &[key, found] : best)
    result.families.push_back(std::move(found));
  std::sort(result.families.begin(), result.families.end(),
            [](const Found &a, const Found &b) { return a.isBefore(b); });
  result.boundSeconds = least;
  result.simulated = static_cast<int64_t>(pipelines.size());
  return result;
}

} // namespace monarch::planner
