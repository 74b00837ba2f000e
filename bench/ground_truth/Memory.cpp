//===- Memory.cpp - predicted and measured memory -------------------------===//
//
// Rows above 10 GB, by kind of measurement, with what the source rounded off
// taken away from the error; and whether runs that ran out of memory, or did
// not, are told so with the default headroom.
//
//===----------------------------------------------------------------------===//
#include "bench/ground_truth/Memory.h"

#include "planner/families/ShapeWork.h"
#include "planner/step/StepMemory.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>

namespace monarch::bench {

using namespace planner;

namespace {

constexpr double GiB = 1024.0 * 1024 * 1024;

struct Measured {
  MemoryKind kind = MemoryKind::Allocated;
  std::string label;
  double bytes = 0;
  /// Half of the last digit printed.
  double rounding = 0;
  bool isLastRank = false;
};

double number(const Json &json, const char *key) {
  return json.contains(key) && json[key].is_number() ? json[key].get<double>()
                                                     : 0;
}

/// Half of the last decimal that is printed.
double halfDigit(double value) {
  for (double unit : {1.0, 0.1, 0.01})
    if (std::abs(value / unit - std::round(value / unit)) < 1e-6)
      return unit / 2;
  return 0.0005;
}

std::optional<Measured> measuredOf(const Json &json) {
  const std::string kind = json.value("kind", "");
  Measured measured;
  if (kind.starts_with("torch_cuda_peak")) {
    measured.label = "allocated (Megatron-Core CI)";
    measured.bytes = number(json, "peak_allocated_bytes");
    measured.isLastRank = true;
  } else if (kind.starts_with("peak_memory_gb (paper")) {
    measured.label = "allocated (Zero Bubble)";
    measured.bytes = number(json, "peak_memory_gb") * GiB;
    measured.rounding = 0.5 * GiB;
  } else if (kind.starts_with("torch_peak_reserved")) {
    measured.kind = MemoryKind::Reserved;
    measured.label = "reserved (torchtitan)";
    measured.bytes = number(json, "peak_memory_gib") * GiB;
    measured.rounding = halfDigit(number(json, "peak_memory_gib")) * GiB;
  } else if (kind.starts_with("nvidia_smi")) {
    measured.kind = MemoryKind::Driver;
    measured.label = "nvidia-smi (BLOOM)";
    measured.bytes = number(json, "peak_memory_gb") * GiB;
    measured.rounding = 0.5 * GiB;
  } else if (kind.find("author-reported") != std::string::npos) {
    measured.label = "author-reported";
    measured.bytes = number(json, "peak_memory_gb") * GiB;
    measured.rounding = halfDigit(number(json, "peak_memory_gb")) * GiB;
  } else {
    return std::nullopt;
  }
  return measured;
}

struct Tally {
  std::vector<double> errors, biases;
};

void print(const std::string &label, Tally tally) {
  std::sort(tally.errors.begin(), tally.errors.end());
  double sum = 0, bias = 0;
  for (double error : tally.errors)
    sum += error;
  for (double value : tally.biases)
    bias += value;
  const double n = static_cast<double>(tally.errors.size());
  fmt::print("{:<44} {:>4} {:>7.1f} {:>7.1f} {:>7.1f} {:>+7.1f}\n", label,
             tally.errors.size(), sum / n,
             tally.errors[tally.errors.size() / 2], tally.errors.back(),
             bias / n);
}

} // namespace

std::optional<Error> reportMemory(const std::string &path,
                                  const std::vector<Source> &sources,
                                  bool printsRows) {
  auto reading = readRows(path, sources, false);
  if (!reading)
    return reading.error();
  std::map<std::string, Tally> tallies;
  int ranOut = 0, toldRanOut = 0, fitted = 0, toldFits = 0;
  for (const Row &row : reading->rows) {
    const bool isOom = row.json.value("kind", "") == "oom_event";
    auto measured = measuredOf(row.json);
    constexpr double Least = 10e9;
    if (!isOom && (!measured || measured->bytes < Least))
      continue;
    auto work = planner::workOf(row.model, row.target.style);
    if (!work)
      return work.error();
    MemoryModel model(*work, row.target);
    const StepLayout &layout = row.layouts[0];
    StepMemory memory = model.price(layout, measured && measured->isLastRank);
    if (row.id.find("without-embedding") != std::string::npos)
      memory = model.stage(layout, layout.pp / 2);
    const MemoryKind kind = measured ? measured->kind : MemoryKind::Driver;
    double beside = model.overhead(kind, memory);
    if (double context = number(row.json, "cuda_context_mib"); context > 0)
      beside = context * 1024 * 1024;
    const double bytes = memory.total + beside;
    const double card = row.machine.device.memoryBytes;
    if (isOom || kind == MemoryKind::Driver) {
      (isOom ? ranOut : fitted) += 1;
      bool tellsFit = bytes <= card;
      (isOom ? toldRanOut : toldFits) += isOom ? !tellsFit : tellsFit;
    }
    if (printsRows)
      fmt::print("{:<44} {:>6.1f} {:>6.1f} GiB  stage {} states {:.1f} "
                 "saved {:.1f} logits {:.1f} layer {:.1f} gathered {:.1f}\n",
                 row.id, bytes / GiB, measured ? measured->bytes / GiB : 0,
                 memory.stage,
                 (memory.parameters + memory.gradients + memory.optimizer) /
                     GiB,
                 memory.activations / GiB, memory.logits / GiB,
                 memory.layer / GiB, memory.gathered / GiB);
    if (isOom)
      continue;
    const double off = bytes - measured->bytes;
    Tally &tally = tallies[row.split + " " + measured->label];
    if (row.isSuspect)
      continue;
    tally.errors.push_back(100 *
                           std::max(0.0, std::abs(off) - measured->rounding) /
                           measured->bytes);
    tally.biases.push_back(100 * off / measured->bytes);
  }
  fmt::print("\n{:<44} {:>4} {:>7} {:>7} {:>7} {:>7}\n",
             "peak memory above 10 GB", "n", "mean %", "median", "max", "bias");
  for (const auto &[label, tally] : tallies)
    if (!tally.errors.empty())
      print(label, tally);
  fmt::print("ran out of memory: {} of {} told; fitted: {} of {} told\n",
             toldRanOut, ranOut, toldFits, fitted);
  return std::nullopt;
}

} // namespace monarch::bench
