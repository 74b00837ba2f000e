//===- main.cpp - how fast and how good the search of layouts is ----------===//
//
//   planner-bench [--data FILE --sources FILE] [--runs N]
//
// Times the choice for large models (median of the runs), counts bounds a
// second, and sets the layouts that experts published against the search's own.
//
//===----------------------------------------------------------------------===//
#include "bench/ground_truth/Row.h"
#include "planner/choose/Compare.h"
#include "planner/choose/EmbeddingTables.h"
#include "planner/choose/LayoutSearch.h"
#include "planner/choose/MixedDevices.h"
#include "planner/families/ShapeWork.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ctime>
#include <fmt/format.h>
#include <map>
#include <set>

using namespace monarch;
using namespace monarch::bench;
using namespace monarch::planner;

namespace {

/// Seconds of this process on its one core: the wall's on an idle machine, and
/// the same on a busy one.
double now() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

Machine boxes(const char *device, int64_t devices) {
  return usualBoxes(*findDevice(device), devices);
}

ModelShape llama(int64_t layers, int64_t hidden, int64_t heads,
                 int64_t mlpHidden) {
  ModelShape shape;
  shape.family = ModelFamily::Llama;
  shape.isGated = true;
  shape.isTied = false;
  shape.layers = layers;
  shape.hidden = hidden;
  shape.heads = heads;
  shape.kvHeads = 8;
  shape.headDim = 128;
  shape.mlpHidden = mlpHidden;
  shape.vocabulary = 128256;
  shape.sequence = 8192;
  return shape;
}

/// As its paper says: 61 layers of which 3 are dense, 256 experts, latent
/// attention.
ModelShape deepSeek() {
  ModelShape shape = llama(61, 7168, 128, 18432);
  shape.kvHeads = 128;
  shape.vocabulary = 129280;
  shape.sequence = 4096;
  ExpertShape experts;
  experts.count = 256;
  experts.perToken = 8;
  experts.hidden = experts.sharedHidden = 2048;
  experts.denseLayers = 3;
  shape.experts = experts;
  shape.latent = LatentShape{1536, 512};
  return shape;
}

struct Query {
  const char *name;
  ModelShape model;
  const char *device;
  int64_t devices, globalBatch;
  double limitSeconds;
};

void timeQueries(int runs) {
  const Query queries[] = {{"70B, 512 H100", llama(80, 8192, 64, 28672),
                            "H100-SXM5-80GB", 512, 1024, 0.2},
                           {"405B, 16384 H100", llama(126, 16384, 128, 53248),
                            "H100-SXM5-80GB", 16384, 2048, 0.5},
                           {"671B experts, 2048 H100", deepSeek(),
                            "H100-SXM5-80GB", 2048, 15360, 1.0}};
  fmt::print("{:<24} {:>8} {:>7} {:>8} {:>9} {:>7} {:>9} {:>9} {:>7}  "
             "choice\n",
             "query", "seconds", "limit", "step s", "bounded", "priced",
             "simulated", "too large", "gap %");
  for (const char *name : {"megatron", "torchtitan"})
    for (const Query &query : queries) {
      const Target target = *findTarget(name);
      auto work = planner::workOf(query.model, target.style);
      if (!work)
        continue;
      const Machine machine = boxes(query.device, query.devices);
      LayoutRequest request;
      request.globalBatch = query.globalBatch;
      std::vector<double> times;
      Expected<LayoutChoice> choice = Error{};
      for (int run = 0; run < runs; ++run) {
        const double begin = now();
        choice = chooseLayout(*work, machine, target, request);
        times.push_back(now() - begin);
      }
      std::sort(times.begin(), times.end());
      const double median = times[times.size() / 2];
      if (!choice) {
        fmt::print("{:<24} {:>8.3f} {:>7.1f} {}: {}\n", query.name, median,
                   query.limitSeconds, name, toString(choice.error()));
        continue;
      }
      fmt::print(
          "{:<24} {:>8.3f} {:>7.1f} {:>8.3f} {:>9} {:>7} {:>9} {:>9} {:>7.2f}  "
          "{}: {}\n",
          query.name, median, query.limitSeconds, choice->best.time.seconds,
          choice->bounded, choice->priced, choice->simulated,
          choice->overMemory, 100 * choice->gap(), name,
          shortName(choice->best.layout));
    }
  // Every candidate of the space, nothing pruned.
  for (const Query &query : queries) {
    const Target target = *findTarget("megatron");
    auto work = planner::workOf(query.model, target.style);
    const Machine machine = boxes(query.device, query.devices);
    LayoutRequest request;
    request.globalBatch = query.globalBatch;
    LayoutSearch search(*work, machine, target, request);
    std::vector<double> times;
    int64_t count = 0;
    for (int run = 0; run < runs; ++run) {
      const double begin = now();
      count = search.boundAll();
      times.push_back(now() - begin);
    }
    std::sort(times.begin(), times.end());
    fmt::print("bounds of {}: {} in {:.3f} s, {:.2f} million a second\n",
               query.name, count, times[times.size() / 2],
               1e-6 * static_cast<double>(count) / times[times.size() / 2]);
  }
}

void timeMixed(int runs) {
  const Target target = *findTarget("deepspeed");
  ModelShape model = llama(48, 6144, 48, 16384);
  model.sequence = 2048;
  auto work = planner::workOf(model, target.style);
  const std::vector<Machine> parts = {boxes("A100-SXM4-40GB", 128),
                                      boxes("V100-SXM2-32GB", 384)};
  LayoutRequest request;
  request.globalBatch = 1536;
  std::vector<double> times;
  Expected<MixedChoice> choice = Error{};
  for (int run = 0; run < runs; ++run) {
    const double begin = now();
    choice = chooseMixedLayout(*work, parts, target, request);
    times.push_back(now() - begin);
  }
  std::sort(times.begin(), times.end());
  fmt::print("mixed 128 A100 + 384 V100: {:.3f} s (limit 1.0): {}\n",
             times[times.size() / 2],
             choice ? fmt::format("{} bounded, {} priced\n{}", choice->bounded,
                                  choice->priced, summarize(*choice, parts))
                    : toString(choice.error()));
}

void timeTables(int runs) {
  const Target target = *findTarget("torchtitan");
  const Machine machine = boxes("A100-SXM4-80GB", 128);
  // A fixed linear congruence: sizes over four decades, as in such models.
  std::vector<EmbeddingTable> tables;
  uint32_t state = 1;
  auto next = [&](uint32_t count) {
    state = state * 1664525U + 1013904223U;
    return (state >> 8) % count;
  };
  for (int index = 0; index < 1000; ++index) {
    EmbeddingTable table;
    table.name = fmt::format("table{}", index);
    table.rows = 1000LL << next(15);
    table.width = 16LL << next(5);
    table.lookups = 1 + next(50);
    tables.push_back(std::move(table));
  }
  TableRequest request;
  request.globalBatch = 65536;
  request.denseBytes = 4e9;
  request.denseSeconds = 0.02;
  std::vector<double> times;
  Expected<TablePlan> plan = Error{};
  for (int run = 0; run < runs; ++run) {
    const double begin = now();
    plan = placeTables(tables, machine, target, request);
    times.push_back(now() - begin);
  }
  std::sort(times.begin(), times.end());
  fmt::print("1000 tables, 128 A100: {:.3f} s (limit 1.0): {}\n",
             times[times.size() / 2],
             plan ? fmt::format("step {:.4g} s, gap {:.2f} %", plan->seconds,
                                100 * plan->gap())
                  : toString(plan.error()));
}

/// Sources whose rows are layouts that experts chose, not sweeps or baselines.
bool isExpert(const Row &row) {
  static const std::set<std::string> keys = {
      "SC'21 T1",   "Korthikanti T5",    "MT-NLG",       "Megatron 2020",
      "NeMo 24.07", "NeMo 24.03",        "Bridge dense", "Bridge MoE",
      "torchtitan", "torchtitan 2025",   "AutoModel",    "fms-fsdp",
      "MegaScale",  "Megatron-Core r0.8"};
  const bool isBaseline = row.source->key == "Korthikanti T5" &&
                          row.layouts[0].recompute == Recompute::Full;
  return keys.contains(row.source->key) && !row.isSuspect && row.seconds > 0 &&
         !isBaseline;
}

/// Of the layouts that a row may stand for, the fastest that fits, else the
/// smallest.
std::optional<Estimate> expertOf(const Row &row, const ModelWork &work,
                                 std::string &refusal) {
  std::optional<Estimate> best;
  for (const StepLayout &layout : row.layouts) {
    auto own = estimate(work, row.machine, row.target, layout);
    if (!own) {
      refusal = own.error().what;
      continue;
    }
    const bool isBetter =
        !best || (own->fits && !best->fits) ||
        (own->fits == best->fits &&
         (own->fits ? own->time.seconds < best->time.seconds
                    : own->memory.total < best->memory.total));
    if (isBetter)
      best = std::move(*own);
  }
  return best;
}

/// What is left to choose when a publication's own choices are taken over.
struct Freedom {
  const char *name;
  LayoutPins (*pins)(const StepLayout &expert);
};
constexpr double Near = 0.05;

LayoutPins sameRecompute(const StepLayout &expert) {
  LayoutPins pins;
  pins.recompute = expert.recompute;
  return pins;
}

const Freedom Freedoms[] = {
    {"everything free", [](const StepLayout &) { return LayoutPins{}; }},
    {"recompute as published", sameRecompute},
    {"recompute, micro-batch and cp as published",
     [](const StepLayout &expert) {
       LayoutPins pins = sameRecompute(expert);
       pins.microBatch = expert.microBatch;
       pins.cp = expert.cp;
       return pins;
     }}};

/// "recompute=full,cp=2" without its values.
std::string namesOf(std::string_view pins) {
  std::string names;
  bool isValue = false;
  for (char letter : pins) {
    isValue = letter != ',' && (isValue || letter == '=');
    if (!isValue)
      names += letter;
  }
  return names;
}

/// The fewest of the expert's decisions that bring the search within reach of
/// the expert when it takes them over.
std::string whatExplains(const Row &row, const ModelWork &work,
                         const Estimate &expert) {
  const std::vector<const char *> names = {
      "recompute", "micro_batch", "cp", "tp", "ep", "pp", "vpp", "zero"};
  const Json values = layoutJson(expert.layout);
  auto isNear = [&](const std::string &pins) {
    LayoutRequest request;
    request.globalBatch = expert.layout.globalBatch;
    request.precision = expert.layout.precision;
    request.pins = *readLayoutPins(pins);
    auto choice = chooseLayout(work, row.machine, row.target, request);
    return choice &&
           expert.time.seconds <= choice->best.time.seconds * (1 + Near);
  };
  auto pin = [&](const char *name) {
    return fmt::format("{}={}", name, values[name].get<std::string>());
  };
  for (const char *name : names)
    if (isNear(pin(name)))
      return pin(name);
  for (size_t first = 0; first < names.size(); ++first)
    for (size_t second = first + 1; second < names.size(); ++second)
      if (const std::string both = pin(names[first]) + "," + pin(names[second]);
          isNear(both))
        return both;
  return "more than two decisions";
}

int compareExperts(const std::string &data, const std::string &sourcesPath) {
  auto sources = readSources(sourcesPath);
  if (!sources)
    return 3;
  auto reading = readRows(data, *sources);
  if (!reading)
    return 3;
  int count = 0, legal = 0, fitting = 0;
  std::map<std::string, int> causes;
  int near[std::size(Freedoms)] = {}, asked[std::size(Freedoms)] = {};
  // Releases that repeat a layout count once.
  std::set<std::string> seen;
  for (const Row &row : reading->rows) {
    if (!isExpert(row))
      continue;
    const StepLayout &printed = row.layouts[0];
    if (!seen.insert(fmt::format("{} {} {} {} {} {}", row.source->key,
                                 row.model.hidden, row.model.layers,
                                 row.machine.device.name, row.machine.devices,
                                 writeJson(layoutJson(printed))))
             .second)
      continue;
    auto work = planner::workOf(row.model, row.target.style);
    if (!work)
      continue;
    ++count;
    std::string refusal;
    auto expert = expertOf(row, *work, refusal);
    if (!expert) {
      fmt::print("{:<44} refused: {}\n", row.id, refusal);
      continue;
    }
    ++legal;
    fitting += expert->fits;
    for (size_t index = 0; index < std::size(Freedoms); ++index) {
      LayoutRequest request;
      request.globalBatch = printed.globalBatch;
      request.precision = printed.precision;
      request.pins = Freedoms[index].pins(expert->layout);
      auto choice = chooseLayout(*work, row.machine, row.target, request);
      if (!choice)
        continue;
      ++asked[index];
      const double longer =
          expert->time.seconds / choice->best.time.seconds - 1;
      if (expert->fits && longer <= Near)
        ++near[index];
      else if (index == 0) {
        const std::string cause = expert->fits
                                      ? whatExplains(row, *work, *expert)
                                      : "does not fit by this model";
        fmt::print("{:<44} {}\n    ours {}: {}\n    explained by {}\n", row.id,
                   shortName(expert->layout), shortName(choice->best.layout),
                   whyLost(*expert, choice->best), cause);
        ++causes[namesOf(cause)];
      }
    }
  }
  fmt::print("expert layouts: {}; legal {}, fit {}\n", count, legal, fitting);
  for (size_t index = 0; index < std::size(Freedoms); ++index)
    fmt::print("  {}: {} of {} fit and are within {:.0f} % of the search's own "
               "({:.0f} %)\n",
               Freedoms[index].name, near[index], asked[index], 100 * Near,
               100.0 * near[index] / asked[index]);
  fmt::print("what explains the others, taken over alone:\n");
  for (const auto &[cause, times] : causes)
    fmt::print("  {:<28} {}\n", cause, times);
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("Speed and quality of the search of layouts");
  std::string data, sources;
  int runs = 9;
  app.add_option("--data", data);
  app.add_option("--sources", sources);
  app.add_option("--runs", runs)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  timeQueries(runs);
  timeMixed(runs);
  timeTables(runs);
  return data.empty() ? 0 : compareExperts(data, sources);
}
