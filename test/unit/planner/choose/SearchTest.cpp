//===- SearchTest.cpp - bounds below prices, choices as good as all -------===//
//
// Random models, machines, targets and batches. The bound of a candidate is
// never above its price, whatever the cut of the layers; and the search finds
// what trying every layout finds. Seeds are printed on failure.
//
//===----------------------------------------------------------------------===//
#include "planner/choose/LayoutSearch.h"
#include "planner/families/ModelShape.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

using namespace monarch;
using namespace monarch::planner;

namespace {

struct Case {
  Target target;
  Machine machine;
  ModelWork work;
  LayoutRequest request;
};

class Random {
public:
  explicit Random(unsigned seed) : engine(seed) {}
  template <typename T> T of(std::initializer_list<T> values) {
    return values.begin()[engine() % values.size()];
  }
  double between(double low, double high) {
    return low + (high - low) * static_cast<double>(engine() % 1000) / 999;
  }

private:
  std::mt19937 engine;
};

Case randomCase(unsigned seed) {
  Random random(seed);
  Case made;
  made.target = *findTarget(
      random.of({"megatron", "megatron-2022", "megatron-zb", "deepspeed",
                 "torchtitan", "fsdp", "internevo", "automodel"}));
  ModelShape shape;
  shape.family = ModelFamily::Llama;
  shape.isGated = true;
  shape.isTied = random.of({true, false});
  shape.heads = random.of<int64_t>({4, 6, 8});
  shape.kvHeads = 2;
  shape.headDim = 64;
  shape.hidden = shape.heads * 64 * random.of<int64_t>({1, 2, 4});
  shape.mlpHidden = shape.hidden * 3;
  shape.vocabulary = random.of<int64_t>({1000, 32000, 128000});
  shape.sequence = random.of<int64_t>({256, 2048});
  std::vector<int64_t> repeats = {random.of<int64_t>({1, 2, 3, 4, 5, 6, 8})};
  if (made.target.hasExpert && random.of({true, false})) {
    ExpertShape experts;
    experts.count = 8;
    experts.perToken = 2;
    experts.hidden = shape.hidden;
    experts.denseLayers = random.of<int64_t>({0, 1});
    shape.experts = experts;
    shape.layers = 1 + experts.denseLayers;
    if (experts.denseLayers)
      repeats = {random.of<int64_t>({1, 2}), repeats[0]};
  }
  made.work = *workOf(*buildGraph(shape), made.target.style, repeats);
  made.machine.device = *findDevice(
      random.of({"A100-SXM4-80GB", "H100-SXM5-80GB", "V100-SXM2-32GB"}));
  made.machine.devices = random.of<int64_t>({1, 2, 4, 6, 8});
  made.machine.devicesPerNode = random.of<int64_t>({2, 4, 8});
  made.machine.nodeNicBytesPerSecond = random.of({12.5e9, 100e9});
  made.machine.nics = random.of<int64_t>({1, 4});
  made.request.globalBatch = random.of<int64_t>({8, 12, 16, 24});
  // Tight to loose: of what states alone take when they are shared out.
  const double states = 16 * made.work.parameterCount() /
                        static_cast<double>(made.machine.devices);
  const double context = made.target.contextGiB * 1024 * 1024 * 1024;
  made.machine.device.memoryBytes =
      (context + random.of({0.2, 0.7, 1.2, 2.0, 8.0}) *
                     (states + random.between(0.1e9, 1e9))) /
      (1 - MemoryHeadroom);
  return made;
}

void forEachCandidate(const LayoutSearch &search,
                      const std::function<void(const StepLayout &, Recompute,
                                               const LayoutVariant &)> &visit) {
  for (const StepLayout &degrees : search.space().degrees())
    for (const LayoutVariant &variant : search.space().variants(degrees))
      for (Recompute recompute : search.space().recomputes())
        visit(degrees, recompute, variant);
}

StepLayout layoutOf(const StepLayout &degrees, Recompute recompute,
                    const LayoutVariant &variant) {
  StepLayout layout = degrees;
  layout.recompute = recompute;
  layout.chunks = variant.chunks;
  layout.schedule = variant.schedule;
  layout.sharding = variant.sharding;
  layout.shardGroup = variant.shardGroup;
  layout.offloadsOptimizer = variant.offloadsOptimizer;
  return layout;
}

/// All cuts near the even share.
void forEachCut(
    int64_t stages, int64_t layers,
    const std::function<void(const std::vector<int64_t> &)> &visit) {
  const int64_t low =
      std::max<int64_t>(0, layers / stages - LayoutSpace::CutSlack);
  const int64_t high = (layers + stages - 1) / stages + LayoutSpace::CutSlack;
  std::vector<int64_t> cut;
  std::function<void(int64_t)> extend = [&](int64_t left) {
    if (static_cast<int64_t>(cut.size()) == stages) {
      if (left == 0)
        visit(cut);
      return;
    }
    for (int64_t count = low; count <= std::min(high, left); ++count) {
      cut.push_back(count);
      extend(left - count);
      cut.pop_back();
    }
  };
  extend(layers);
}

} // namespace

TEST_CASE("A bound is never above the price, whatever the cut") {
  constexpr double Rounding = 1e-9;
  int64_t checked = 0;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed);
    Case made = randomCase(seed);
    LayoutSearch search(made.work, made.machine, made.target, made.request);
    StepModel model(made.work, made.machine, made.target, builtInConstants());
    Random random(seed);
    forEachCandidate(search, [&](const StepLayout &degrees, Recompute recompute,
                                 const LayoutVariant &variant) {
      if (random.between(0, 1) > 0.1)
        return;
      const double bound = search.bound(degrees, recompute, variant);
      StepLayout layout = layoutOf(degrees, recompute, variant);
      auto check = [&](const std::vector<int64_t> &cut) {
        layout.stageLayers = cut;
        ++checked;
        const double price = model.price(layout).seconds;
        if (bound > price * (1 + Rounding))
          CHECK(bound <= price);
      };
      if (search.space().hasFreeCuts(layout.pp, layout.chunks))
        forEachCut(layout.pp, static_cast<int64_t>(made.work.layers.size()),
                   check);
      else
        for (const auto &cut : search.space().fixedCuts(layout))
          check(cut);
    });
  }
  CHECK(checked > 10000);
}

TEST_CASE("The search agrees with trying every layout") {
  int feasible = 0, infeasible = 0, optimal = 0;
  double worst = 0, widest = 0;
  for (unsigned seed = 1000; seed < 1250; ++seed) {
    INFO("seed " << seed);
    Case made = randomCase(seed);
    LayoutSearch search(made.work, made.machine, made.target, made.request);
    const LayoutSearch::Result result = search.run();
    StepModel model(made.work, made.machine, made.target, builtInConstants());
    MemoryModel memory(made.work, made.target);
    const double usable =
        usableBytes(made.machine, made.target, made.request.headroom);
    double best = 0;
    forEachCandidate(search, [&](const StepLayout &degrees, Recompute recompute,
                                 const LayoutVariant &variant) {
      StepLayout layout = layoutOf(degrees, recompute, variant);
      auto check = [&](const std::vector<int64_t> &cut) {
        layout.stageLayers = cut;
        // Closed forms bound the simulation, which takes long.
        if (best > 0 && model.price(layout).seconds >= best)
          return;
        const double price = model.simulated(layout).seconds;
        if ((best == 0 || price < best) && memory.price(layout).total <= usable)
          best = price;
      };
      if (search.space().hasFreeCuts(layout.pp, layout.chunks))
        forEachCut(layout.pp, static_cast<int64_t>(made.work.layers.size()),
                   check);
      else
        for (const auto &cut : search.space().fixedCuts(layout))
          check(cut);
    });
    CHECK(result.families.empty() == (best == 0));
    if (best == 0) {
      ++infeasible;
      continue;
    }
    ++feasible;
    const double found = result.families.front().seconds;
    widest = std::max(widest, 1 - result.boundSeconds / found);
    CHECK(result.boundSeconds <= best * (1 + 1e-9));
    optimal += found <= best * (1 + 1e-9);
    worst = std::max(worst, found / best - 1);
  }
  INFO(feasible << " feasible, " << infeasible << " not, " << optimal
                << " exactly optimal, worst " << worst << ", widest gap "
                << widest);
  CHECK(feasible >= 150);
  CHECK(infeasible >= 20);
  // What a longer stage hides of its reduction is not searched for, nor what
  // the simulation alone sees.
  CHECK(worst <= 1e-3);
  CHECK(optimal >= feasible - 2);
}
