//===- EmbeddingTables.cpp - tables of recommendation models --------------===//
#include "planner/choose/EmbeddingTables.h"

#include "planner/step/Network.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <numeric>
#include <set>

namespace monarch::planner {

namespace {

constexpr double GiB = 1024.0 * 1024 * 1024;

/// A table cut into equal parts.
struct Cut {
  TableSplit split = TableSplit::Whole;
  int64_t parts = 1;
  /// Of one part.
  double seconds = 0, bytes = 0;
};

class Placer {
public:
  Placer(const std::vector<EmbeddingTable> &tables, const Machine &machine,
         const Target &target, const TableRequest &request)
      : tables(tables), machine(machine), request(request),
        kernels(machine.device, builtInConstants()),
        network(machine, builtInConstants(), target.hasOldRings),
        usable(usableBytes(machine, target, request.headroom)),
        room(usable - request.denseBytes) {
    for (const EmbeddingTable &table : tables)
      cuts.push_back(cutsOf(table));
  }

  Expected<TablePlan> place();

private:
  std::vector<Cut> cutsOf(const EmbeddingTable &table) const;
  double bound() const;
  std::optional<TablePlan> tryPlace(double limit) const;

  const std::vector<EmbeddingTable> &tables;
  const Machine &machine;
  const TableRequest &request;
  Kernels kernels;
  Network network;
  double usable, room;
  /// Of each table, from whole to the finest.
  std::vector<std::vector<Cut>> cuts;
};

std::vector<Cut> Placer::cutsOf(const EmbeddingTable &table) const {
  const double batch = static_cast<double>(request.globalBatch);
  const double width = static_cast<double>(table.width);
  const double devices = static_cast<double>(machine.devices);
  // A device's links or its share of the node's NICs.
  const double rate = machine.devices <= machine.devicesPerNode
                          ? network.linkRate()
                          : network.nicRate() / network.domain();
  auto make = [&](TableSplit split, int64_t parts) {
    const double count = static_cast<double>(parts);
    const double columns = split == TableSplit::Columns ? width / count : width;
    const double share = split == TableSplit::Rows ? 1 / count : 1;
    Cut cut{split, parts, 0, 0};
    // Forward reads rows, backward reads and writes them with their state.
    const double touched =
        batch * table.lookups * share *
        (3 * columns * table.elementBytes + 2 * table.rowStateBytes);
    // Sums go to the samples' devices and their gradients come back; parts by
    // rows send sums of their own.
    const double moved = 2 * batch * columns * 4 * (devices - 1) / devices;
    cut.seconds = kernels.memory(touched) + moved / rate +
                  3 * builtInConstants().kernelSeconds;
    cut.bytes = table.bytes() / count;
    if (split == TableSplit::Columns)
      cut.bytes = static_cast<double>(table.rows) *
                  (columns * table.elementBytes + table.rowStateBytes);
    return cut;
  };
  std::vector<Cut> list = {make(TableSplit::Whole, 1)};
  // Narrower columns than these waste sectors of memory.
  constexpr int64_t NarrowestColumns = 16;
  for (int64_t parts = 2; parts <= machine.devices; parts *= 2) {
    if (table.width % parts == 0 && table.width / parts >= NarrowestColumns)
      list.push_back(make(TableSplit::Columns, parts));
    if (table.rows >= parts)
      list.push_back(make(TableSplit::Rows, parts));
  }
  return list;
}

/// All parts of each table's cheapest cut shared out evenly, and the least that
/// the part of any one table can take.
double Placer::bound() const {
  double total = 0, longest = 0;
  for (const std::vector<Cut> &list : cuts) {
    double all = std::numeric_limits<double>::infinity(), one = all;
    for (const Cut &cut : list)
      if (cut.bytes <= room) {
        all = std::min(all, cut.seconds * static_cast<double>(cut.parts));
        one = std::min(one, cut.seconds);
      }
    total += all;
    longest = std::max(longest, one);
  }
  return std::max(total / static_cast<double>(machine.devices), longest);
}

/// Every table by its cheapest cut whose parts are short enough, the longest
/// parts first, each to the device that is free first and has room.
std::optional<TablePlan> Placer::tryPlace(double limit) const {
  std::vector<const Cut *> chosen;
  for (const std::vector<Cut> &list : cuts) {
    const Cut *best = nullptr;
    // A part that fills most of a device leaves holes beside it.
    constexpr double LargestShare = 0.5;
    auto costs = [](const Cut &cut) {
      return cut.seconds * static_cast<double>(cut.parts);
    };
    for (double share : {LargestShare, 1.0})
      for (const Cut &cut : list)
        if (!(best && share == 1.0) && cut.seconds <= limit &&
            cut.bytes <= share * room && (!best || costs(cut) < costs(*best)))
          best = &cut;
    if (!best)
      return std::nullopt;
    chosen.push_back(best);
  }
  std::vector<size_t> order(tables.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(chosen[a]->seconds, chosen[a]->bytes) >
           std::pair(chosen[b]->seconds, chosen[b]->bytes);
  });
  TablePlan plan;
  plan.placements.resize(tables.size());
  std::vector<double> bytes(static_cast<size_t>(machine.devices), 0);
  std::set<std::pair<double, int64_t>> free;
  for (int64_t device = 0; device < machine.devices; ++device)
    free.emplace(0, device);
  for (size_t table : order) {
    const Cut &cut = *chosen[table];
    TablePlacement &placement = plan.placements[table];
    placement.table = table;
    placement.split = cut.split;
    std::vector<std::pair<double, int64_t>> taken;
    for (const auto &entry : free) {
      if (static_cast<int64_t>(taken.size()) == cut.parts)
        break;
      if (bytes[static_cast<size_t>(entry.second)] + cut.bytes <= room)
        taken.push_back(entry);
    }
    if (static_cast<int64_t>(taken.size()) < cut.parts)
      return std::nullopt;
    for (const auto &entry : taken) {
      free.erase(entry);
      free.emplace(entry.first + cut.seconds, entry.second);
      bytes[static_cast<size_t>(entry.second)] += cut.bytes;
      placement.devices.push_back(entry.second);
      plan.seconds = std::max(plan.seconds, entry.first + cut.seconds);
    }
    std::sort(placement.devices.begin(), placement.devices.end());
  }
  plan.bytes = *std::max_element(bytes.begin(), bytes.end());
  return plan;
}

Expected<TablePlan> Placer::place() {
  double all = 0;
  for (size_t table = 0; table < tables.size(); ++table) {
    all += tables[table].bytes();
    const Cut &finest = *std::min_element(
        cuts[table].begin(), cuts[table].end(),
        [](const Cut &a, const Cut &b) { return a.bytes < b.bytes; });
    if (finest.bytes > room)
      return Error{
          "MP3310", ExitCode::Infeasible,
          fmt::format("table {} needs {:.1f} GiB a device even in {} parts; "
                      "{:.1f} GiB are usable, the dense part takes {:.1f}",
                      tables[table].name, finest.bytes / GiB, finest.parts,
                      usable / GiB, request.denseBytes / GiB),
          "", "more devices, or a smaller table"};
  }
  if (all > room * static_cast<double>(machine.devices))
    return Error{
        "MP3310", ExitCode::Infeasible,
        fmt::format("all tables need {:.1f} GiB, {} devices have "
                    "{:.1f} GiB beside the dense part",
                    all / GiB, machine.devices,
                    room * static_cast<double>(machine.devices) / GiB),
        "",
        fmt::format("{:.0f} such devices have room", std::ceil(all / room))};
  // Parts shorter than the limit: a ladder from the bound upwards.
  const double least = bound();
  constexpr double Step = 1.1;
  constexpr int Steps = 80;
  std::optional<TablePlan> best;
  double limit = least;
  for (int step = 0; step < Steps; ++step, limit *= Step) {
    if (best && best->seconds <= least * (1 + 1e-9))
      break;
    auto plan = tryPlace(limit);
    if (plan && (!best || plan->seconds < best->seconds))
      best = std::move(plan);
  }
  if (!best)
    return Error{"MP3310", ExitCode::Infeasible,
                 "the tables' parts leave holes that the rest does not fit "
                 "into",
                 "", "a little more memory, or more devices"};
  best->seconds += request.denseSeconds;
  best->boundSeconds = least + request.denseSeconds;
  best->bytes += request.denseBytes;
  best->usableBytes = usable;
  return *best;
}

} // namespace

Expected<TablePlan> placeTables(const std::vector<EmbeddingTable> &tables,
                                const Machine &machine, const Target &target,
                                const TableRequest &request) {
  return Placer(tables, machine, target, request).place();
}

} // namespace monarch::planner
