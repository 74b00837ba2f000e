//===- LayoutBounds.cpp - the least that layouts can take -----------------===//
//
// What all variants of some degrees share, relaxed over how layers are cut into
// stages, and the admissible bounds that follow from it.
//
//===----------------------------------------------------------------------===//
#include "planner/choose/LayoutSearch.h"

#include <algorithm>
#include <limits>

namespace monarch::planner {

static constexpr double Never = std::numeric_limits<double>::infinity();

LayoutSearch::Shared LayoutSearch::sharedOf(const StepLayout &degrees,
                                            Recompute recompute) const {
  StepLayout layout = degrees;
  layout.recompute = recompute;
  Shared shared;
  shared.blocks = &model.blocksOf(layout);
  shared.bytes = memory.layerBytes(layout, recompute);
  layout.chunks = 2;
  shared.chunkedBytes = memory.layerBytes(layout, recompute);
  shared.leastSeconds = Never;
  for (size_t kind = 0; kind < kindCounts.size(); ++kind) {
    if (kindCounts[kind] == 0)
      continue;
    const StepModel::Layer &layer = shared.blocks->kinds[kind];
    const double count = static_cast<double>(kindCounts[kind]);
    shared.forward += count * layer.forward;
    shared.backward += count * layer.backward;
    shared.leastSeconds =
        std::min(shared.leastSeconds, layer.forward + layer.backward);
    shared.mostForward = std::max(shared.mostForward, layer.forward);
    shared.mostBackward = std::max(shared.mostBackward, layer.backward);
    const double both = layer.forward + layer.backward;
    shared.forwardShare = std::max(shared.forwardShare, layer.forward / both);
    shared.backwardShare =
        std::max(shared.backwardShare, layer.backward / both);
  }
  relax(degrees, shared);
  if (degrees.pp > 1 && target.isFullySharded &&
      request.pins.stageLayers.empty())
    addFirsts(degrees, shared);
  // A stage with a slow rank hides more.
  for (StageFacts *facts : {&shared.relaxed, &shared.folded})
    for (const auto &[rank, factor] : slowRanks) {
      facts->forward *= std::max(1.0, factor);
      facts->backward *= std::max(1.0, factor);
    }
  return shared;
}

/// Layers of a kind that some stage has at least, whatever the cut.
double LayoutSearch::mostOf(size_t kind, int64_t stages) const {
  return static_cast<double>((kindCounts[kind] + stages - 1) / stages);
}

/// The least that the slowest stage can take, whatever the cut: no stage has
/// more than a few layers above the even share.
double LayoutSearch::slowestOf(const StepLayout &degrees,
                               const Shared &shared) const {
  const double first = shared.blocks->embedding, last = shared.blocks->head;
  const double stages = static_cast<double>(degrees.pp);
  const double total = shared.forward + shared.backward + first + last;
  const double average = std::max({total / stages, first, last});
  const int64_t layers = static_cast<int64_t>(work.layers.size());
  const double one = shared.leastSeconds;
  if (!request.pins.stageLayers.empty())
    return average;
  if (work.kinds.size() > 1) {
    // Some stage has at least the even share of each kind, rounded up.
    double least = average;
    for (size_t kind = 0; kind < kindCounts.size(); ++kind) {
      const StepModel::Layer &layer = shared.blocks->kinds[kind];
      least = std::max(least, mostOf(kind, degrees.pp) *
                                  (layer.forward + layer.backward));
    }
    return least;
  }
  // Equal layers: the least of the few possible times with room for all.
  const int64_t low =
      std::max<int64_t>(0, layers / degrees.pp - LayoutSpace::CutSlack);
  const int64_t high =
      (layers + degrees.pp - 1) / degrees.pp + LayoutSpace::CutSlack;
  auto room = [&](double limit, double extra) {
    const double count = std::floor((limit - extra) / one * (1 + 1e-12));
    return std::clamp<double>(count, 0, static_cast<double>(high));
  };
  double least = Never;
  for (int64_t count = low; count <= high; ++count)
    for (double extra : {0.0, first, last}) {
      const double limit = static_cast<double>(count) * one + extra;
      if (limit < average * (1 - 1e-12) || limit >= least)
        continue;
      if (room(limit, first) + room(limit, last) +
              (stages - 2) * room(limit, 0) >=
          static_cast<double>(layers))
        least = limit;
    }
  return std::isfinite(least) ? least : average;
}

void LayoutSearch::relax(const StepLayout &degrees, Shared &shared) const {
  const BlockSplit split = splitOf(degrees);
  LayerElements elements;
  elements.leastDense = elements.leastExperts = Never;
  for (size_t kind = 0; kind < kindCounts.size(); ++kind) {
    if (kindCounts[kind] == 0)
      continue;
    const BlockWork &block = work.kinds[kind];
    const double dense = block.denseParameters(split),
                 experts = block.expertParameters / split.expert;
    const double count = static_cast<double>(kindCounts[kind]);
    elements.allDense += count * dense;
    elements.allExperts += count * experts;
    elements.leastDense = std::min(elements.leastDense, dense);
    elements.leastExperts = std::min(elements.leastExperts, experts);
    const double most = mostOf(kind, degrees.pp);
    elements.mostDense = std::max(elements.mostDense, most * dense);
    elements.mostExperts = std::max(elements.mostExperts, most * experts);
  }
  const double first = work.embedding.denseParameters(split);
  double last = work.head.denseParameters(split);
  StageFacts &facts = shared.relaxed;
  const double ends = shared.blocks->embedding + shared.blocks->head;
  facts.sum = shared.forward + shared.backward + ends;
  if (degrees.pp == 1) {
    facts.slowest = facts.sum;
    facts.forward = shared.forward;
    facts.backward = shared.backward;
    facts.parameters = facts.firstParameters = elements.allDense + first + last;
    facts.experts = facts.firstExperts = elements.allExperts;
    facts.firstLayers = static_cast<double>(work.layers.size());
    return;
  }
  const double ownLast = last;
  if (work.isTied)
    last += work.embedding.tensorParameters / split.tensor;
  const int64_t layers = static_cast<int64_t>(work.layers.size());
  const double stages = static_cast<double>(degrees.pp);
  double low = static_cast<double>(
      std::max<int64_t>(0, layers / degrees.pp - LayoutSpace::CutSlack));
  double high = static_cast<double>((layers + degrees.pp - 1) / degrees.pp +
                                    LayoutSpace::CutSlack);
  if (!request.pins.stageLayers.empty()) {
    low = 0;
    high = static_cast<double>(layers);
  }
  facts.slowest = slowestOf(degrees, shared);
  facts.forward = high * shared.mostForward;
  facts.backward = high * shared.mostBackward;
  facts.parameters = std::max(
      {(elements.allDense + first + last) / stages,
       low * elements.leastDense + std::max(first, last), elements.mostDense});
  facts.experts = std::max(elements.allExperts / stages, elements.mostExperts);
  facts.firstLayers = low;
  facts.firstParameters = low * elements.leastDense + first;
  facts.firstExperts = low * elements.leastExperts;
  StageFacts &folded = shared.folded;
  folded = facts;
  folded.slowest = std::max(facts.sum / stages, ends);
  folded.firstParameters = low * elements.leastDense + first + ownLast;
  folded.parameters = std::max({(elements.allDense + first + ownLast) / stages,
                                folded.firstParameters, elements.mostDense});
}

void LayoutSearch::addFirsts(const StepLayout &degrees, Shared &shared) const {
  const BlockSplit split = splitOf(degrees);
  const int64_t layers = static_cast<int64_t>(work.layers.size());
  const int64_t low =
      std::max<int64_t>(0, layers / degrees.pp - LayoutSpace::CutSlack);
  const int64_t high = std::min(layers, (layers + degrees.pp - 1) / degrees.pp +
                                            LayoutSpace::CutSlack);
  std::vector<int64_t> left = kindCounts;
  StageFacts own;
  own.slowest = shared.blocks->embedding;
  own.firstParameters = work.embedding.denseParameters(split);
  for (int64_t count = 0; count <= high; ++count) {
    if (count >= low) {
      // What is left takes its even share, whole layers of each kind.
      double rest = shared.relaxed.sum - own.slowest;
      rest = std::max(rest / static_cast<double>(degrees.pp - 1),
                      shared.blocks->head);
      for (size_t kind = 0; kind < left.size(); ++kind) {
        const StepModel::Layer &layer = shared.blocks->kinds[kind];
        const int64_t most = (left[kind] + degrees.pp - 2) / (degrees.pp - 1);
        rest = std::max(rest, static_cast<double>(most) *
                                  (layer.forward + layer.backward));
      }
      StageFacts &facts = shared.firsts.emplace_back(shared.relaxed);
      facts.slowest = std::max({facts.slowest, own.slowest, rest});
      facts.firstLayers = static_cast<double>(count);
      facts.firstParameters = own.firstParameters;
      facts.firstExperts = own.firstExperts;
    }
    if (count == high)
      break;
    const size_t kind =
        static_cast<size_t>(work.layers[static_cast<size_t>(count)]);
    const StepModel::Layer &layer = shared.blocks->kinds[kind];
    own.slowest += layer.forward + layer.backward;
    own.firstParameters += work.kinds[kind].denseParameters(split);
    own.firstExperts += work.kinds[kind].expertParameters / split.expert;
    --left[kind];
  }
}

double LayoutSearch::degreesBound(const StepLayout &degrees,
                                  const Shared &shared) const {
  const StageFacts &facts = shared.relaxed;
  const double count = degrees.microBatches();
  const int64_t layers = static_cast<int64_t>(work.layers.size());
  const bool interleaves = target.hasInterleaving && degrees.pp > 1 &&
                           static_cast<int64_t>(count) % degrees.pp == 0;
  double share = interleaves ? static_cast<double>(degrees.pp) /
                                   static_cast<double>(layers)
                             : 1;
  double slowest = facts.slowest;
  StepLayout layout = degrees;
  if (degrees.pp > 1)
    for (Schedule schedule : Schedules) {
      layout.schedule = schedule;
      if (!offers(target, schedule))
        continue;
      share = std::min(share, rampShare(layout));
      if (isFolded(schedule))
        slowest = std::min(slowest, shared.folded.slowest);
    }
  const double ramp = share * (facts.sum - slowest);
  return count * slowest + (1 - builtInConstants().powerHeadroom) * ramp +
         stepSeconds;
}

double LayoutSearch::boundOf(const StepLayout &layout, const Shared &shared,
                             StageFacts facts, double sends,
                             FirstLayers first) const {
  // What a stage hides behind its own work is at most a share of its seconds.
  // More seconds on the slowest stage then cost more than they can hide, but
  // for a single micro-batch.
  const double count = layout.microBatches();
  auto hide = [&](StageFacts &own) {
    const double shares = shared.forwardShare + shared.backwardShare;
    if (count - 1 < target.dataOverlap * shares)
      return;
    own.forward =
        std::min(own.forward, shared.forwardShare * (own.slowest - sends));
    own.backward =
        std::min(own.backward, shared.backwardShare * (own.slowest - sends));
  };
  if (shared.firsts.empty() || isFolded(layout.schedule)) {
    hide(facts);
    return model.combine(layout, *shared.blocks, facts, sends).seconds;
  }
  double least = Never;
  for (StageFacts own : shared.firsts) {
    if (own.firstLayers < first.least || own.firstLayers >= first.below)
      continue;
    own.slowest = std::max(own.slowest + sends, facts.slowest);
    own.sum = facts.sum;
    hide(own);
    least = std::min(least,
                     model.combine(layout, *shared.blocks, own, sends).seconds);
  }
  return least;
}

double LayoutSearch::bound(const StepLayout &layout,
                           const Shared &shared) const {
  const double sends = model.sendSeconds(layout);
  if (!request.pins.stageLayers.empty())
    return model.combine(layout, *shared.blocks, model.factsOf(layout), sends)
        .seconds;
  StageFacts facts = isFolded(layout.schedule) ? shared.folded : shared.relaxed;
  facts.slowest += sends;
  facts.sum += sends * static_cast<double>(layout.pp);
  return boundOf(layout, shared, facts, sends, {});
}

double LayoutSearch::bound(const StepLayout &degrees, Recompute recompute,
                           const LayoutVariant &variant) {
  StepLayout layout = degrees;
  layout.recompute = recompute;
  apply(variant, layout);
  layout.stageLayers = request.pins.stageLayers;
  return bound(layout, sharedOf(degrees, recompute));
}

} // namespace monarch::planner
