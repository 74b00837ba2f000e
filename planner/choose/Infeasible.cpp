//===- Infeasible.cpp - why no layout will do -----------------------------===//
#include "planner/choose/Infeasible.h"

#include "planner/choose/Compare.h"
#include "planner/choose/PinNames.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>

namespace monarch::planner {

namespace {

constexpr double GiB = 1024.0 * 1024 * 1024;

LayoutSearch::Result anyThatFits(const ModelWork &work, const Machine &machine,
                                 const Target &target, LayoutRequest request) {
  request.onProgress = nullptr;
  return LayoutSearch(work, machine, target, request).anyThatFits();
}

bool isFeasible(const ModelWork &work, const Machine &machine,
                const Target &target, const LayoutRequest &request) {
  return !anyThatFits(work, machine, target, request).families.empty();
}

/// The smallest number of nodes, by powers of two, that fits; 0: none.
int64_t devicesThatFit(const ModelWork &work, const Machine &machine,
                       const Target &target, const LayoutRequest &request) {
  constexpr int64_t Most = 65536;
  Machine larger = machine;
  while (larger.devices * 2 <= Most) {
    larger.devices = larger.devices < larger.devicesPerNode
                         ? std::min(larger.devices * 2, larger.devicesPerNode)
                         : larger.devices * 2;
    if (isFeasible(work, larger, target, request))
      return larger.devices;
  }
  return 0;
}

/// What frees most memory of the layout that comes closest.
std::string leverOf(const ModelWork &work, const Target &target,
                    const StepLayout &closest) {
  const MemoryModel model(work, target);
  const StepMemory now = model.price(closest);
  std::vector<std::pair<double, std::string>> levers;
  auto tryLayout = [&](const StepLayout &layout, std::string name) {
    levers.emplace_back(now.total - model.price(layout).total, std::move(name));
  };
  StepLayout other = closest;
  other.recompute = Recompute::Full;
  tryLayout(other, "full recompute");
  other = closest;
  if (other.microBatch > 1) {
    other.microBatch = 1;
    tryLayout(other, "micro-batch 1");
  }
  other = closest;
  if (target.maxSharding > closest.sharding) {
    other.sharding = target.maxSharding;
    tryLayout(other, fmt::format("zero={}", static_cast<int>(other.sharding)));
  }
  other = closest;
  other.dp *= 2;
  tryLayout(other, "twice the devices for data parallelism");
  other = closest;
  other.tp *= 2;
  tryLayout(other, "twice the devices for tensor parallelism");
  other = closest;
  if (other.pp * 2 <= static_cast<int64_t>(work.layers.size()) &&
      target.hasPipeline) {
    other.pp *= 2;
    other.stageLayers.clear();
    tryLayout(other, "twice the devices for pipeline stages");
  }
  const std::pair<double, const char *> parts[] = {
      {now.parameters + now.gradients + now.optimizer,
       "parameters and their state"},
      {now.activations, "activations"},
      {std::max(now.logits, now.layer), "logits or one layer made again"}};
  const auto largest = *std::max_element(std::begin(parts), std::end(parts));
  const auto best = *std::max_element(levers.begin(), levers.end());
  return fmt::format("most of it is {} ({:.1f} GiB); {} frees {:.1f} GiB",
                     largest.second, largest.first / GiB, best.second,
                     best.first / GiB);
}

/// Of the pins, those whose bit is set.
LayoutPins someOf(const LayoutPins &pins, uint32_t bits) {
  LayoutPins rest = pins;
  uint32_t bit = 1;
  for (const auto &[name, value] : pins.entries()) {
    if (!(bits & bit))
      rest = withoutPin(rest, name);
    bit <<= 1;
  }
  return rest;
}

/// What a pin could be if the others stay: values of layouts that fit.
std::string legalValues(const ModelWork &work, const Machine &machine,
                        const Target &target, const LayoutRequest &request,
                        const std::string &name) {
  LayoutRequest rest = request;
  rest.onProgress = nullptr;
  rest.pins = withoutPin(request.pins, name);
  LayoutSearch search(work, machine, target, rest);
  std::vector<std::string> values;
  std::set<std::string> seen;
  for (const StepLayout &degrees : search.space().degrees())
    for (Recompute recompute : search.space().recomputes())
      for (const LayoutVariant &variant : search.space().variants(degrees)) {
        StepLayout layout = degrees;
        layout.recompute = recompute;
        layout.chunks = variant.chunks;
        layout.schedule = variant.schedule;
        layout.sharding = variant.sharding;
        layout.shardGroup = variant.shardGroup;
        layout.offloadsOptimizer = variant.offloadsOptimizer;
        std::string own;
        for (const auto &[key, value] : valuesOf(layout))
          if (key == name)
            own = value;
        if (own.empty() || seen.contains(own) ||
            !search.price(degrees, recompute, variant))
          continue;
        seen.insert(own);
        values.push_back(own);
      }
  std::sort(values.begin(), values.end(),
            [](const std::string &a, const std::string &b) {
              return std::pair(a.size(), a) < std::pair(b.size(), b);
            });
  return values.empty() ? "no value"
                        : fmt::format("{}", fmt::join(values, ", "));
}

/// "; 12.3 GiB less": what a device needs at the least without this pin,
/// against what it needs with it; "" where pins do not go together for other
/// reasons.
std::string freedWithout(const ModelWork &work, const Machine &machine,
                         const Target &target, const LayoutRequest &request,
                         const LayoutSearch::Result &found,
                         const std::string &name) {
  if (!found.closest)
    return "";
  LayoutRequest rest = request;
  rest.pins = withoutPin(request.pins, name);
  const auto other = anyThatFits(work, machine, target, rest);
  if (other.families.empty())
    return "";
  const MemoryModel model(work, target);
  return fmt::format(" ({:.1f} GiB less)",
                     (model.price(found.closest->layout).total -
                      model.price(other.families.front().layout).total) /
                         GiB);
}

} // namespace

Error whyNothingFits(const ModelWork &work, const Machine &machine,
                     const Target &target, const LayoutRequest &request,
                     const LayoutSearch::Result &result) {
  if (!result.closest) {
    StepLayout plain;
    plain.dp = machine.devices;
    if (target.isFullySharded)
      plain.sharding = Sharding::Parameters;
    plain.globalBatch = request.globalBatch;
    std::vector<std::string> reasons =
        layoutViolations(work, machine, target, plain);
    // Data parallelism alone is legal, but no degrees with these pins are.
    if (reasons.empty())
      reasons.push_back("the degrees that are left do not multiply to them");
    return {"MP3310", ExitCode::Infeasible,
            fmt::format("no layout of {} can use {} devices for batch {}: {}",
                        target.name, machine.devices, request.globalBatch,
                        fmt::join(reasons, "; ")),
            "", "a batch or a count of devices with common factors"};
  }
  const StepLayout &closest = result.closest->layout;
  const MemoryModel model(work, target);
  const StepMemory memory = model.price(closest);
  const int64_t devices = devicesThatFit(work, machine, target, request);
  const std::string larger =
      devices == 0 ? std::string("no number of these nodes is enough")
                   : fmt::format("{} of these devices are enough", devices);
  return {"MP3310", ExitCode::Infeasible,
          fmt::format("nothing fits: the least is {:.1f} GiB a device ({}), "
                      "{:.1f} GiB are usable",
                      memory.total / GiB, shortName(closest),
                      usableBytes(machine, target, request.headroom) / GiB),
          fmt::format("stage {}", memory.stage),
          fmt::format("{}; {}", larger, leverOf(work, target, closest))};
}

std::string violationsOf(const ModelWork &work, const Machine &machine,
                         const Target &target, const LayoutRequest &request) {
  const LayoutPins &pins = request.pins;
  StepLayout layout;
  layout.tp = pins.tp.value_or(1);
  layout.pp = pins.pp.value_or(1);
  layout.cp = pins.cp.value_or(1);
  layout.ep = pins.ep.value_or(1);
  const int64_t others = layout.tp * layout.pp * layout.cp;
  layout.dp = pins.dp.value_or(std::max<int64_t>(1, machine.devices / others));
  layout.chunks = pins.chunks.value_or(1);
  layout.microBatch = pins.microBatch.value_or(1);
  layout.sharding = pins.sharding.value_or(
      target.isFullySharded ? Sharding::Parameters : Sharding::None);
  layout.shardGroup = pins.shardGroup.value_or(0);
  layout.offloadsOptimizer = pins.offloadsOptimizer.value_or(false);
  layout.schedule = pins.schedule.value_or(Schedule::OneForwardOneBackward);
  layout.isSequenceParallel = pins.isSequenceParallel.value_or(false);
  layout.stageLayers = pins.stageLayers;
  layout.globalBatch = request.globalBatch;
  const auto list = layoutViolations(work, machine, target, layout);
  return list.empty() ? target.name + " has no such layout here"
                      : fmt::format("{}", fmt::join(list, "; "));
}

Error whyPinsConflict(const ModelWork &work, const Machine &machine,
                      const Target &target, const LayoutRequest &request,
                      const LayoutSearch::Result &result) {
  const auto entries = request.pins.entries();
  LayoutRequest free = request;
  free.pins = {};
  if (!isFeasible(work, machine, target, free))
    return whyNothingFits(work, machine, target, free,
                          anyThatFits(work, machine, target, free));
  // The smallest subset that is infeasible alone; the first in pin order.
  const uint32_t all = (1U << entries.size()) - 1;
  std::vector<uint32_t> subsets;
  for (uint32_t bits = 1; bits <= all; ++bits)
    subsets.push_back(bits);
  std::sort(subsets.begin(), subsets.end(), [](uint32_t a, uint32_t b) {
    return std::pair(std::popcount(a), a) < std::pair(std::popcount(b), b);
  });
  LayoutRequest conflicting = request;
  LayoutSearch::Result found = result;
  for (uint32_t bits : subsets) {
    conflicting.pins = someOf(request.pins, bits);
    if (bits == all) {
      found = result;
      break;
    }
    found = anyThatFits(work, machine, target, conflicting);
    if (found.families.empty())
      break;
  }
  std::vector<std::string> names, ways;
  for (const auto &[name, value] : conflicting.pins.entries()) {
    names.push_back(fmt::format("{}={}", name, value));
    ways.push_back(fmt::format(
        "{} could be {}{}", name,
        legalValues(work, machine, target, conflicting, name),
        freedWithout(work, machine, target, conflicting, found, name)));
  }
  const std::string why =
      found.closest ? fmt::format("{:.1f} GiB too many a device at the least",
                                  found.closestOver / GiB)
                    : violationsOf(work, machine, target, conflicting);
  return {"MP3311", ExitCode::Infeasible,
          fmt::format("{} cannot be honoured{}: {}", fmt::join(names, ", "),
                      names.size() > 1 ? " together" : "", why),
          "", fmt::format("{}", fmt::join(ways, "; "))};
}

} // namespace monarch::planner
