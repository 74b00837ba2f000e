//===- MixedDevices.cpp - pipelines over devices of several types ---------===//
#include "planner/choose/MixedDevices.h"

#include "planner/choose/Compare.h"
#include "planner/choose/LayoutSpace.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <memory>
#include <numeric>

namespace monarch::planner {

namespace {

constexpr double GiB = 1024.0 * 1024 * 1024;

/// Stages of each part, and the rest of the layout.
struct Candidate {
  double bound = 0;
  /// Index of the layout without its stages, and which of its counts.
  uint32_t layout = 0;
  uint32_t counts = 0;
};

struct Priced {
  StepLayout layout;
  std::vector<StageRun> runs;
  StepTime time;
  StepMemory memory;
  double usable = 0;
};

class MixedSearch {
public:
  MixedSearch(const ModelWork &work, const std::vector<Machine> &given,
              const Target &target, const LayoutRequest &request, bool usesAll)
      : work(work), parts(given), target(target), request(request),
        usesAll(usesAll), layers(static_cast<int64_t>(work.layers.size())) {
    for (const Machine &part : parts)
      total += part.devices;
    // Rings see a part's own devices; sends may leave it.
    for (Machine &part : parts) {
      own.push_back(part.devices);
      part.devices = total;
    }
    for (const Machine &part : parts) {
      models.push_back(
          std::make_unique<StepModel>(work, part, target, builtInConstants()));
      memories.emplace_back(work, target);
      usable.push_back(usableBytes(part, target, request.headroom));
    }
  }

  void run(MixedChoice &choice, bool &isFound);

private:
  void addDegrees();
  void addStages(const StepLayout &layout);
  /// Seconds of all layers on each part, of its fastest one, and sends.
  struct Speeds {
    std::vector<double> all, least;
    double sends = 0;
  };
  Speeds speedsOf(const StepLayout &layout) const;
  double boundOf(const StepLayout &layout, const std::vector<int64_t> &stages,
                 const Speeds &speeds) const;
  /// The stages that a number stands for; false: too large a number.
  bool stagesOf(int64_t group, uint32_t number,
                std::vector<int64_t> &stages) const;
  std::optional<Priced> price(const Candidate &candidate) const;
  std::optional<Priced> price(const StepLayout &layout,
                              const std::vector<StageRun> &runs) const;
  bool allows(const StepLayout &layout) const;

  const ModelWork &work;
  std::vector<Machine> parts;
  const Target &target;
  const LayoutRequest &request;
  const bool usesAll;
  const int64_t layers;
  int64_t total = 0;
  std::vector<int64_t> own;
  std::vector<std::unique_ptr<StepModel>> models;
  std::vector<MemoryModel> memories;
  std::vector<double> usable;
  std::vector<StepLayout> layouts;
  std::vector<Candidate> candidates;
};

bool MixedSearch::allows(const StepLayout &layout) const {
  const LayoutPins &pins = request.pins;
  auto is = [](const auto &pin, const auto &value) {
    return !pin || *pin == value;
  };
  return is(pins.dp, layout.dp) && is(pins.tp, layout.tp) &&
         is(pins.cp, layout.cp) && is(pins.ep, layout.ep) &&
         is(pins.microBatch, layout.microBatch) &&
         is(pins.recompute, layout.recompute) &&
         is(pins.sharding, layout.sharding) && is(pins.chunks, int64_t(1)) &&
         is(pins.schedule, layout.schedule) &&
         (layout.tp == 1 ||
          is(pins.isSequenceParallel, layout.isSequenceParallel));
}

void MixedSearch::addDegrees() {
  const int64_t largest = *std::max_element(own.begin(), own.end());
  constexpr int64_t LargestMicroBatch = 16;
  for (int64_t tp = 1; tp <= parts[0].devicesPerNode; ++tp)
    for (int64_t cp = 1; cp <= (target.hasContext ? largest / tp : 1); cp *= 2)
      for (int64_t dp : divisorsOf(request.globalBatch)) {
        if (tp * cp * dp > largest)
          continue;
        StepLayout layout;
        layout.tp = tp;
        layout.cp = cp;
        layout.dp = dp;
        layout.globalBatch = request.globalBatch;
        layout.precision = request.precision;
        Machine exact = parts[0];
        exact.devices = layout.devices();
        if (target.isFullySharded)
          layout.sharding = Sharding::Parameters;
        if (!layoutViolations(work, exact, target, layout).empty())
          continue;
        for (int64_t rows : divisorsOf(request.globalBatch / dp)) {
          if (rows > LargestMicroBatch)
            continue;
          layout.microBatch = rows;
          for (bool isSequenceParallel : {false, true}) {
            if (isSequenceParallel && (tp == 1 || !target.hasSequence))
              continue;
            layout.isSequenceParallel = isSequenceParallel;
            addStages(layout);
          }
        }
      }
}

/// All numbers of stages on each part, for all kinds of recompute.
void MixedSearch::addStages(const StepLayout &degrees) {
  const int64_t group = degrees.tp * degrees.cp * degrees.dp;
  std::vector<Sharding> shardings = {Sharding::None, Sharding::Optimizer};
  if (target.isFullySharded)
    shardings = {Sharding::Parameters};
  for (Recompute recompute : {Recompute::None, Recompute::Full})
    for (Sharding sharding : shardings) {
      Candidate candidate;
      StepLayout layout = degrees;
      layout.recompute = recompute;
      layout.sharding = sharding;
      if (!allows(layout))
        continue;
      candidate.layout = static_cast<uint32_t>(layouts.size());
      layouts.push_back(layout);
      const Speeds speeds = speedsOf(layout);
      std::vector<int64_t> stages(parts.size());
      for (candidate.counts = 1; stagesOf(group, candidate.counts, stages);
           ++candidate.counts) {
        layout.pp = std::accumulate(stages.begin(), stages.end(), int64_t(0));
        if (layout.pp > layers || (layout.pp > 1 && !target.hasPipeline) ||
            (request.pins.pp && *request.pins.pp != layout.pp))
          continue;
        if (usesAll && std::count(stages.begin(), stages.end(), 0) > 0)
          continue;
        candidate.bound = boundOf(layout, stages, speeds);
        candidates.push_back(candidate);
      }
    }
}

/// Digits of a mixed radix: 0 to as many stages as a part has devices for, or
/// as there are layers.
bool MixedSearch::stagesOf(int64_t group, uint32_t number,
                           std::vector<int64_t> &stages) const {
  int64_t rest = number;
  for (size_t part = 0; part < parts.size(); ++part) {
    const int64_t radix = std::min(own[part] / group, layers) + 1;
    stages[part] = rest % radix;
    rest /= radix;
  }
  return rest == 0;
}

MixedSearch::Speeds MixedSearch::speedsOf(const StepLayout &layout) const {
  Speeds speeds;
  StepLayout two = layout;
  two.pp = 2;
  for (const std::unique_ptr<StepModel> &model : models) {
    const StepModel::Blocks &blocks = model->blocksOf(layout);
    double all = 0, least = std::numeric_limits<double>::infinity();
    for (int kind : work.layers) {
      const StepModel::Layer &layer = blocks.kinds[static_cast<size_t>(kind)];
      all += layer.forward + layer.backward;
      least = std::min(least, layer.forward + layer.backward);
    }
    speeds.all.push_back(all);
    speeds.least.push_back(least);
    const double sends = model->sendSeconds(two);
    speeds.sends =
        speeds.all.size() == 1 ? sends : std::min(speeds.sends, sends);
  }
  return speeds;
}

/// Layers shared out by speed: the least time of a stage in which the stages,
/// with whole layers each, have room for all. Embedding, head and reductions
/// are left out.
double MixedSearch::boundOf(const StepLayout &layout,
                            const std::vector<int64_t> &stages,
                            const Speeds &speeds) const {
  double speed = 0, fastest = std::numeric_limits<double>::infinity();
  for (size_t part = 0; part < parts.size(); ++part) {
    if (stages[part] == 0)
      continue;
    speed += static_cast<double>(stages[part]) / speeds.all[part];
    fastest = std::min(fastest, speeds.all[part]);
  }
  double slowest = 1 / speed;
  if (work.kinds.size() == 1) {
    double whole = std::numeric_limits<double>::infinity();
    for (size_t part = 0; part < parts.size(); ++part) {
      if (stages[part] == 0)
        continue;
      // The next whole number of layers on this part, or one of those after.
      const double one = speeds.least[part];
      for (double limit = std::ceil(slowest / one * (1 - 1e-12)) * one;
           limit < whole; limit += one) {
        double room = 0;
        for (size_t other = 0; other < parts.size(); ++other)
          room += static_cast<double>(stages[other]) *
                  std::floor(limit / speeds.least[other] * (1 + 1e-12));
        if (room >= static_cast<double>(layers))
          whole = limit;
      }
    }
    slowest = std::max(slowest, whole);
  }
  const double count = layout.microBatches();
  const double sends = layout.pp > 1 ? speeds.sends : 0;
  // What the ramp adds, and a part of it that cooler devices win back.
  const Constants &constants = builtInConstants();
  const double ramp = std::max(0.0, fastest - slowest) +
                      sends * static_cast<double>(layout.pp - 1);
  const double pipeline = count * (slowest + sends) + ramp;
  return (1 - constants.powerHeadroom) * pipeline +
         constants.powerHeadroom * count * slowest + constants.stepSeconds;
}

std::optional<Priced> MixedSearch::price(const Candidate &candidate) const {
  StepLayout layout = layouts[candidate.layout];
  const int64_t group = layout.tp * layout.cp * layout.dp;
  std::vector<int64_t> stages(parts.size());
  stagesOf(group, candidate.counts, stages);
  layout.pp = std::accumulate(stages.begin(), stages.end(), int64_t(0));
  std::vector<size_t> order;
  for (size_t part = 0; part < parts.size(); ++part)
    if (stages[part] > 0)
      order.push_back(part);
  std::optional<Priced> best;
  do {
    std::vector<StageRun> runs;
    for (size_t part : order)
      runs.push_back({part, stages[part], own[part] - stages[part] * group});
    auto priced = price(layout, runs);
    if (priced && (!best || priced->time.seconds < best->time.seconds))
      best = std::move(priced);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

std::optional<Priced>
MixedSearch::price(const StepLayout &given,
                   const std::vector<StageRun> &runs) const {
  StepLayout layout = given;
  std::vector<size_t> partOf;
  for (const StageRun &run : runs)
    partOf.insert(partOf.end(), static_cast<size_t>(run.stages), run.part);
  const BlockSplit split = splitOf(layout);
  struct Part {
    const StepModel::Blocks *blocks = nullptr;
    LayerBytes bytes;
  };
  std::vector<Part> known(parts.size());
  double sends = 0;
  for (const StageRun &run : runs) {
    known[run.part] = {&models[run.part]->blocksOf(layout),
                       memories[run.part].layerBytes(layout, layout.recompute)};
    sends = std::max(sends, models[run.part]->sendSeconds(layout));
  }
  auto holds = [&](int64_t stage, int64_t first, int64_t count) {
    StageHolds found;
    found.layers = static_cast<double>(count);
    for (int64_t i = first; i < first + count; ++i) {
      const BlockWork &block = work.kinds[work.layers[static_cast<size_t>(i)]];
      found.dense += block.denseParameters(split);
      found.experts += block.expertParameters / split.expert;
    }
    const bool isLast = stage == layout.pp - 1;
    if (stage == 0)
      found.dense += work.embedding.denseParameters(split);
    if (isLast)
      found.dense += work.head.denseParameters(split);
    if (isLast && stage > 0 && work.isTied)
      found.dense += work.embedding.tensorParameters / split.tensor;
    return found;
  };
  auto memoryOf = [&](int64_t stage, int64_t first, int64_t count) {
    const size_t part = partOf[static_cast<size_t>(stage)];
    return memories[part].stageOf(layout, stage, layout.recompute,
                                  known[part].bytes,
                                  holds(stage, first, count));
  };
  auto extra = [&](int64_t stage) {
    const StepModel::Blocks &blocks =
        *known[partOf[static_cast<size_t>(stage)]].blocks;
    return (stage == 0 ? blocks.embedding : 0) +
           (stage == layout.pp - 1 ? blocks.head : 0);
  };
  auto layerSeconds = [&](int64_t stage, int64_t layer) {
    const StepModel::Layer &found =
        known[partOf[static_cast<size_t>(stage)]]
            .blocks->kinds[work.layers[static_cast<size_t>(layer)]];
    return found.forward + found.backward;
  };
  // With a limit for the slowest stage, every stage takes all that it can:
  // what the first ones take never hurts the later ones.
  std::vector<int64_t> cut(static_cast<size_t>(layout.pp));
  auto fill = [&](double limit) {
    int64_t next = 0;
    for (int64_t stage = 0; stage < layout.pp; ++stage) {
      const int64_t begin = next, left = layout.pp - 1 - stage;
      double seconds = extra(stage);
      while (next < layers - left &&
             seconds + layerSeconds(stage, next) <= limit &&
             memoryOf(stage, begin, next - begin + 1).total <=
                 usable[partOf[static_cast<size_t>(stage)]]) {
        seconds += layerSeconds(stage, next);
        ++next;
      }
      if (next == begin || seconds > limit)
        return false;
      cut[static_cast<size_t>(stage)] = next - begin;
    }
    return next == layers;
  };
  double low = 0, high = 0;
  for (int64_t stage = 0; stage < layout.pp; ++stage) {
    double all = extra(stage);
    for (int64_t layer = 0; layer < layers; ++layer)
      all += layerSeconds(stage, layer);
    high = std::max(high, all);
  }
  if (!fill(high))
    return std::nullopt;
  constexpr int Halvings = 30;
  for (int step = 0; step < Halvings; ++step) {
    const double middle = (low + high) / 2;
    (fill(middle) ? high : low) = middle;
  }
  fill(high);
  layout.stageLayers = cut;
  Priced priced;
  priced.layout = layout;
  priced.runs = runs;
  std::vector<StageFacts> facts(parts.size());
  double slowest = 0, sum = 0, nearest = -1;
  int64_t first = 0;
  for (int64_t stage = 0; stage < layout.pp; ++stage) {
    const size_t part = partOf[static_cast<size_t>(stage)];
    const int64_t count = cut[static_cast<size_t>(stage)];
    const StageHolds held = holds(stage, first, count);
    StageFacts &own = facts[part];
    double forward = 0, backward = 0;
    for (int64_t i = first; i < first + count; ++i) {
      const StepModel::Layer &layer =
          known[part].blocks->kinds[work.layers[static_cast<size_t>(i)]];
      forward += layer.forward;
      backward += layer.backward;
    }
    const double seconds = forward + backward + extra(stage) + sends;
    slowest = std::max(slowest, seconds);
    sum += seconds;
    own.forward = std::max(own.forward, forward);
    own.backward = std::max(own.backward, backward);
    own.parameters = std::max(own.parameters, held.dense);
    own.experts = std::max(own.experts, held.experts);
    if (own.firstLayers < held.layers) {
      own.firstLayers = held.layers;
      own.firstParameters = held.dense;
      own.firstExperts = held.experts;
    }
    const StepMemory memory = memoryOf(stage, first, count);
    if (memory.total / usable[part] > nearest) {
      nearest = memory.total / usable[part];
      priced.memory = memory;
      priced.usable = usable[part];
    }
    first += count;
  }
  for (const StageRun &run : runs) {
    StageFacts own = facts[run.part];
    own.slowest = slowest;
    own.sum = sum;
    const StepTime time =
        models[run.part]->combine(layout, *known[run.part].blocks, own, sends);
    if (priced.time.seconds == 0)
      priced.time = time;
    priced.time.data = std::max(priced.time.data, time.data);
    priced.time.optimizer = std::max(priced.time.optimizer, time.optimizer);
  }
  StepTime &time = priced.time;
  time.seconds = time.stage + time.bubble + time.data + time.optimizer +
                 builtInConstants().stepSeconds;
  return priced;
}

void MixedSearch::run(MixedChoice &choice, bool &isFound) {
  addDegrees();
  std::stable_sort(
      candidates.begin(), candidates.end(),
      [](const Candidate &a, const Candidate &b) { return a.bound < b.bound; });
  std::optional<Priced> best;
  double least = std::numeric_limits<double>::infinity();
  for (const Candidate &candidate : candidates) {
    if (best && candidate.bound >= best->time.seconds)
      break;
    ++choice.priced;
    auto priced = price(candidate);
    if (!priced)
      continue;
    least = std::min(least, candidate.bound);
    if (!best || priced->time.seconds < best->time.seconds)
      best = std::move(priced);
  }
  choice.bounded = static_cast<int64_t>(candidates.size());
  isFound = best.has_value();
  if (!best)
    return;
  choice.layout = best->layout;
  choice.time = best->time;
  choice.memory = best->memory;
  choice.usableBytes = best->usable;
  choice.boundSeconds = std::min(least, best->time.seconds);
  choice.runs = best->runs;
  for (size_t part = 0; part < parts.size(); ++part) {
    const bool isUsed =
        std::any_of(choice.runs.begin(), choice.runs.end(),
                    [&](const StageRun &run) { return run.part == part; });
    if (!isUsed)
      choice.runs.push_back({part, 0, own[part]});
  }
  for (const StageRun &run : choice.runs)
    choice.idleDevices += run.idle;
}

} // namespace

Expected<MixedChoice> chooseMixedLayout(const ModelWork &work,
                                        const std::vector<Machine> &parts,
                                        const Target &target,
                                        const LayoutRequest &request,
                                        bool usesAll) {
  MixedChoice choice;
  bool isFound = false;
  if (!parts.empty())
    MixedSearch(work, parts, target, request, usesAll).run(choice, isFound);
  if (isFound)
    return choice;
  return Error{"MP3310", ExitCode::Infeasible,
               fmt::format("no pipeline over these {} types of devices fits "
                           "({} layouts tried)",
                           parts.size(), choice.priced),
               "", "more devices, a smaller batch of rows, or other pins"};
}

std::string summarize(const MixedChoice &choice,
                      const std::vector<Machine> &parts) {
  std::string text = fmt::format("{}\n", shortName(choice.layout));
  for (const StageRun &run : choice.runs)
    text += run.stages == 0
                ? fmt::format("  {}: all {} idle\n",
                              parts[run.part].device.name, run.idle)
                : fmt::format("  {}: {} stages, {} of {} idle\n",
                              parts[run.part].device.name, run.stages, run.idle,
                              parts[run.part].devices);
  text += fmt::format("step {:.4g} s, gap {:.2f} % at most; memory {:.1f} of "
                      "{:.1f} GiB on stage {}\n",
                      choice.time.seconds, 100 * choice.gap(),
                      choice.memory.total / GiB, choice.usableBytes / GiB,
                      choice.memory.stage);
  return text;
}

} // namespace monarch::planner
