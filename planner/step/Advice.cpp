//===- Advice.cpp - what an estimate's figures mean for its reader --------===//
#include "planner/step/Advice.h"

#include <algorithm>
#include <fmt/format.h>

namespace monarch::planner {

namespace {

constexpr double GiB = 1024.0 * 1024 * 1024;

/// What a change of the layout would come to; nullopt: not legal.
std::optional<Estimate> changed(const Estimate &e, const ModelWork &work,
                                const Machine &machine, const Target &target,
                                void (*change)(StepLayout &)) {
  StepLayout layout = e.layout;
  change(layout);
  Expected<Estimate> other = estimate(work, machine, target, layout);
  return other ? std::optional(std::move(*other)) : std::nullopt;
}

struct Lever {
  const char *name;
  void (*change)(StepLayout &);
};

constexpr Lever Levers[] = {
    {"micro-batch 1", [](StepLayout &layout) { layout.microBatch = 1; }},
    {"sequence parallelism",
     [](StepLayout &layout) { layout.isSequenceParallel = true; }},
    {"zero 1",
     [](StepLayout &layout) { layout.sharding = Sharding::Optimizer; }},
    {"recompute selective",
     [](StepLayout &layout) { layout.recompute = Recompute::CoreAttention; }},
    {"recompute full",
     [](StepLayout &layout) { layout.recompute = Recompute::Full; }},
    {"cp 2 in place of dp", [](StepLayout &layout) {
       if (layout.dp % 2 == 0) {
         layout.cp *= 2;
         layout.dp /= 2;
       }
     }}};

void adviseMemory(const Estimate &e, const ModelWork &work,
                  const Machine &machine, const Target &target,
                  std::vector<std::string> &remarks) {
  const StepMemory &m = e.memory;
  const double states = m.parameters + m.gradients + m.optimizer;
  const double passing = m.total - states;
  std::string text = fmt::format("needs {:.1f} GiB of {:.1f}", m.total / GiB,
                                 e.usableBytes / GiB);
  if (passing > states && passing > 0) {
    // Activations, logits and what is made again grow with the sequence.
    const double room = std::max(0.0, e.usableBytes - states);
    text += fmt::format(
        "; activation-bound: sharding weights will not help; a sequence of {} "
        "would fit",
        static_cast<int64_t>(work.sequence * room / passing));
  }
  remarks.push_back(text);
  const Lever *best = nullptr;
  double least = m.total;
  bool fits = false;
  for (const Lever &lever : Levers)
    if (const auto other = changed(e, work, machine, target, lever.change);
        other && other->memory.total < least) {
      best = &lever;
      least = other->memory.total;
      fits = other->fits;
    }
  if (best)
    remarks.push_back(fmt::format("most effective: {} ({:.1f} GiB, {})",
                                  best->name, least / GiB,
                                  fits ? "fits" : "still too much"));
}

} // namespace

std::vector<std::string> advice(const Estimate &e, const ModelWork &work,
                                const Machine &machine, const Target &target) {
  std::vector<std::string> remarks;
  if (!e.fits)
    adviseMemory(e, work, machine, target, remarks);
  constexpr double Much = 0.25;
  if (e.memory.logits > Much * e.memory.total) {
    // Half precision, single precision and its gradient at once.
    const double again = e.memory.logits * (1 - 2 / target.logitBytes);
    remarks.push_back(fmt::format(
        "logits take {:.1f} GiB ({:g} bytes each); a chunked loss saves up to "
        "{:.1f} GiB, tp splits the vocabulary",
        e.memory.logits / GiB, target.logitBytes, again / GiB));
  }
  const bool crossesNodes =
      e.layout.dp * e.layout.cp * e.layout.tp > machine.devicesPerNode;
  if (target.isFullySharded && crossesNodes && e.layout.shardGroup == 0 &&
      machine.devicesPerNode % e.layout.tp == 0) {
    StepLayout hybrid = e.layout;
    hybrid.shardGroup = machine.devicesPerNode / e.layout.tp;
    const Expected<Estimate> other = estimate(work, machine, target, hybrid);
    if (other && other->fits && other->time.seconds < e.time.seconds * 0.98)
      remarks.push_back(fmt::format(
          "full sharding crosses nodes: dp_shard={} (shard inside a node, "
          "replicate across) takes {:.3g} s instead of {:.3g} s",
          hybrid.shardGroup, other->time.seconds, e.time.seconds));
  }
  const double card = machine.device.memoryBytes;
  remarks.push_back(fmt::format(
      "usable memory is {:.1f} GiB of the card less {:.0f} % headroom and "
      "{:.1f} GiB of context and communicators",
      card / GiB, 100 * MemoryHeadroom, target.contextGiB));
  return remarks;
}

} // namespace monarch::planner
