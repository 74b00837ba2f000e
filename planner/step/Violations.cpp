//===- Violations.cpp - what speaks against a layout ----------------------===//
#include "core/program/StageSizes.h"
#include "planner/step/Estimate.h"
#include "planner/step/LayoutText.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>

namespace monarch::planner {

namespace {

/// Degrees that divide both the count and the devices.
std::string legalDegrees(int64_t count, int64_t devices) {
  std::string legal;
  for (int64_t degree = 1; degree <= std::min(count, devices); ++degree)
    if (count % degree == 0 && devices % degree == 0)
      legal += (legal.empty() ? "" : ", ") + std::to_string(degree);
  return legal;
}

class Violations {
public:
  Violations(const ModelWork &work, const Machine &machine,
             const Target &target, const StepLayout &layout)
      : work(work), machine(machine), target(target), layout(layout) {}

  std::vector<std::string> list() {
    addDegrees();
    addSharding();
    addExperts();
    addStages();
    addBatch();
    addHeads();
    return std::move(found);
  }

private:
  /// Words are made only where they are wanted: a search asks often.
  template <typename Words> void refuse(bool isWrong, Words words) {
    if (isWrong)
      found.push_back(words());
  }
  auto lacks(const char *what) const {
    return [this, what] { return target.name + " has no " + what; };
  }
  void addDegrees();
  void addSharding();
  void addExperts();
  void addStages();
  void addBatch();
  void addHeads();

  const ModelWork &work;
  const Machine &machine;
  const Target &target;
  const StepLayout &layout;
  std::vector<std::string> found;
};

void Violations::addDegrees() {
  refuse(layout.devices() != machine.devices, [&] {
    return fmt::format("tp {} x pp {} x dp {} x cp {} = {} devices of {}",
                       layout.tp, layout.pp, layout.dp, layout.cp,
                       layout.devices(), machine.devices);
  });
  refuse(layout.tp > 1 && !target.hasTensor, lacks("tensor parallelism: tp 1"));
  refuse(layout.pp > 1 && !target.hasPipeline, lacks("pipelines: pp 1"));
  refuse(layout.cp > 1 && !target.hasContext,
         lacks("context parallelism: cp 1"));
  refuse(layout.isSequenceParallel && layout.tp == 1, [] {
    return "sequence parallelism without tensor parallelism: sp 1";
  });
  refuse(layout.isSequenceParallel && !target.hasSequence,
         lacks("sequence parallelism: sp 1"));
  refuse(static_cast<int64_t>(work.sequence) % layout.cp != 0, [&] {
    return fmt::format("cp {} does not divide the sequence of {}", layout.cp,
                       work.sequence);
  });
  refuse(layout.precision == Precision::Fp8 && machine.device.fp8PeakFlops == 0,
         [&] {
           return machine.device.name +
                  " has no FP8 products: bfloat16 or float16";
         });
}

void Violations::addSharding() {
  const int64_t ranks = layout.dp * layout.cp;
  refuse(layout.sharding > target.maxSharding, [&] {
    return fmt::format("{} does not shard that far: zero 0 to {}", target.name,
                       static_cast<int>(target.maxSharding));
  });
  refuse(target.isFullySharded && layout.sharding < Sharding::Parameters,
         [&] { return target.name + " shards parameters: zero 3"; });
  refuse(layout.shardGroup > 0 && !target.isFullySharded &&
             !target.broadcastsShards,
         [&] {
           return target.name + " shards over all of dp: leave out dp_shard";
         });
  refuse(layout.offloadsOptimizer && !target.hasOffload,
         lacks("optimizer on the host: offload off"));
  refuse(layout.offloadsOptimizer && layout.sharding < Sharding::Optimizer,
         [] { return "an optimizer on the host is sharded: zero 1 or more"; });
  refuse(layout.shardGroup > 0 && ranks % layout.shardGroup != 0, [&] {
    return fmt::format("dp_shard {} does not divide dp x cp = {}",
                       layout.shardGroup, ranks);
  });
}

/// Experts are spread over the ranks of a stage, those of tp included.
void Violations::addExperts() {
  if (layout.ep <= 1)
    return;
  refuse(!target.hasExpert, lacks("expert parallelism: ep 1"));
  const int64_t experts = expertCount(work);
  refuse(experts == 0, [] { return "a model without experts: ep 1"; });
  const int64_t ranks = layout.tp * layout.dp * layout.cp;
  refuse(experts > 0 && (experts % layout.ep != 0 || ranks % layout.ep != 0),
         [&] {
           return fmt::format("ep {} does not divide {} experts and tp x dp x "
                              "cp = {}: legal are {}",
                              layout.ep, experts, ranks,
                              legalDegrees(std::gcd(experts, ranks), ranks));
         });
}

void Violations::addStages() {
  const bool isInterleaved =
      target.hasInterleaving || isFolded(layout.schedule);
  refuse(layout.chunks > 1 && (!isInterleaved || layout.pp == 1), [&] {
    return fmt::format("{} chunks a stage want interleaved pipelines",
                       layout.chunks);
  });
  refuse(layout.chunks > 1 && layout.pp > 1 && !isFolded(layout.schedule) &&
             layout.pp < target.leastInterleavedStages,
         [&] {
           return fmt::format("{} interleaves no fewer than {} stages: vpp 1",
                              target.name, target.leastInterleavedStages);
         });
  refuse(!offers(target, layout.schedule), [&] {
    std::string legal;
    for (Schedule schedule : Schedules)
      if (offers(target, schedule))
        legal += (legal.empty() ? "" : ", ") + std::string(toString(schedule));
    return fmt::format("{} has no schedule {}: {}", target.name,
                       toString(layout.schedule), legal);
  });
  const int64_t chunks = isFolded(layout.schedule) ? 2 : 1;
  refuse(layout.schedule != Schedule::OneForwardOneBackward &&
             layout.chunks != chunks,
         [&] {
           return fmt::format("schedule {} takes vpp {}",
                              toString(layout.schedule), chunks);
         });
  const int64_t layers = static_cast<int64_t>(work.layers.size());
  refuse(layout.pp * layout.chunks > layers, [&] {
    return fmt::format("{} stages of {} chunks for {} layers", layout.pp,
                       layout.chunks, layers);
  });
  const int64_t placed = std::accumulate(layout.stageLayers.begin(),
                                         layout.stageLayers.end(), int64_t(0));
  refuse(!layout.stageLayers.empty() && placed != layers, [&] {
    return fmt::format("stages of {} layers together for {}", placed, layers);
  });
}

void Violations::addBatch() {
  const int64_t rows = multiplySizes(layout.dp, layout.microBatch);
  const int64_t count = layout.globalBatch / rows;
  const bool isDivided = layout.globalBatch % rows == 0;
  const bool isTurning = layout.chunks > 1 && !isFolded(layout.schedule);
  refuse(isTurning && isDivided && count % layout.pp != 0, [&] {
    return fmt::format("{} micro-batches over {} interleaved stages: a "
                       "multiple of {}",
                       count, layout.pp, layout.pp);
  });
  refuse(!isDivided, [&] {
    return fmt::format("batch {} over dp {} x micro-batch {}: nearest {} and "
                       "{}",
                       layout.globalBatch, layout.dp, layout.microBatch,
                       std::max(rows, count * rows), (count + 1) * rows);
  });
}

void Violations::addHeads() {
  for (const BlockWork &block : work.kinds)
    for (const AttentionWork &attention : block.forward.attentions) {
      const int64_t heads = static_cast<int64_t>(attention.heads.size);
      if (heads % layout.tp == 0)
        continue;
      found.push_back(fmt::format("{} heads over tp {}: legal are {}", heads,
                                  layout.tp,
                                  legalDegrees(heads, machine.devices)));
      return;
    }
}

} // namespace

std::vector<std::string> layoutViolations(const ModelWork &work,
                                          const Machine &machine,
                                          const Target &target,
                                          const StepLayout &layout) {
  return Violations(work, machine, target, layout).list();
}

int64_t expertCount(const ModelWork &work) {
  double count = 0;
  for (const BlockWork &block : work.kinds)
    for (const Product &product : block.forward.products)
      if (product.isExpert)
        count = std::max(count, product.batch.size);
  return static_cast<int64_t>(count);
}

} // namespace monarch::planner
