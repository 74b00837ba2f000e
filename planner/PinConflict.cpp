//===- PinConflict.cpp - pins that no plan which fits can have ------------===//
#include "planner/PinConflict.h"

#include "planner/cluster/Units.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace monarch::planner {

namespace {

/// A pin as it is written, how to drop it, and what a plan has in its place.
struct NamedPin {
  std::string name, value;
  void (*drop)(Pins &pins);
  std::string (*valueOf)(const PlanResult &plan);
};

std::vector<NamedPin> entriesOf(const Pins &pins) {
  std::vector<NamedPin> list;
  auto add = [&](const char *name, const std::optional<int64_t> &pin, auto drop,
                 auto valueOf) {
    if (pin)
      list.push_back({name, std::to_string(*pin), drop, valueOf});
  };
  add(
      "dp", pins.dp, [](Pins &p) { p.dp.reset(); },
      [](const PlanResult &plan) { return std::to_string(plan.degrees.dp); });
  add(
      "tp", pins.tp, [](Pins &p) { p.tp.reset(); },
      [](const PlanResult &plan) { return std::to_string(plan.degrees.tp); });
  add(
      "pp", pins.pp, [](Pins &p) { p.pp.reset(); },
      [](const PlanResult &plan) { return std::to_string(plan.degrees.pp); });
  add(
      "micro_batch", pins.microBatch, [](Pins &p) { p.microBatch.reset(); },
      [](const PlanResult &plan) {
        return std::to_string(plan.degrees.unitRows);
      });
  if (pins.schedule)
    list.push_back({"schedule", std::string(toString(*pins.schedule)),
                    [](Pins &p) { p.schedule.reset(); },
                    [](const PlanResult &plan) {
                      return std::string(toString(plan.decisions.schedule));
                    }});
  return list;
}

/// Of the pins, those whose bit is set.
Pins someOf(const Pins &pins, const std::vector<NamedPin> &entries,
            uint32_t bits) {
  Pins some = pins;
  for (size_t index = 0; index < entries.size(); ++index)
    if (!(bits >> index & 1))
      entries[index].drop(some);
  return some;
}

} // namespace

std::optional<Error> conflictOfPins(const PlanRequest &request,
                                    const Error &nothingFits,
                                    const PlanSearch &search) {
  const std::vector<NamedPin> entries = entriesOf(request.pins);
  if (entries.empty())
    return std::nullopt;
  auto with = [&](uint32_t bits) {
    PlanRequest other = request;
    other.pins = someOf(request.pins, entries, bits);
    return search(other);
  };
  if (!with(0))
    return std::nullopt;
  // Smaller sets first, then in the order of the pins.
  const uint32_t all = (1U << entries.size()) - 1;
  std::vector<uint32_t> subsets;
  for (uint32_t bits = 1; bits < all; ++bits)
    subsets.push_back(bits);
  std::stable_sort(subsets.begin(), subsets.end(), [](uint32_t a, uint32_t b) {
    return std::popcount(a) < std::popcount(b);
  });
  const auto found = std::find_if(subsets.begin(), subsets.end(),
                                  [&](uint32_t bits) { return !with(bits); });
  const uint32_t blamed = found == subsets.end() ? all : *found;

  std::vector<std::string> names, ways;
  for (size_t index = 0; index < entries.size(); ++index) {
    if (!(blamed >> index & 1))
      continue;
    const NamedPin &pin = entries[index];
    names.push_back(pin.name + "=" + pin.value);
    // The set is a smallest one: it fits without any of them.
    if (const auto other = with(blamed & ~(1U << index)))
      ways.push_back(fmt::format("{} could be {}, with {} a device", pin.name,
                                 pin.valueOf(*other),
                                 formatBytes(other->peakBytes)));
  }
  return Error{
      "MP3105", ExitCode::Infeasible,
      fmt::format("{} cannot be honoured{}: {}", fmt::join(names, ", "),
                  names.size() > 1 ? " together" : "", nothingFits.what),
      nothingFits.where, fmt::format("{}", fmt::join(ways, "; "))};
}

} // namespace monarch::planner
