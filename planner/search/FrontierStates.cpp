//===- FrontierStates.cpp - what the frontier programme knows -------------===//
#include "planner/search/FrontierStates.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

namespace monarch::planner {

static constexpr size_t Empty = std::numeric_limits<size_t>::max();

static size_t hashOf(std::span<const LiveValue> live) {
  size_t hash = live.size();
  for (const LiveValue &value : live)
    for (int entry : {value.value, value.home, value.cotangent, value.copies})
      hash = (hash ^ static_cast<size_t>(entry + 1)) * 0x9E3779B97F4A7C15u;
  return hash ^ hash >> 32;
}

void FrontierStates::clear() {
  states.clear();
  values.clear();
  std::fill(slots.begin(), slots.end(), Empty);
}

void FrontierStates::load(size_t index, WalkState &walk) const {
  std::span<const LiveValue> from = live(states[index]);
  walk.live.assign(from.begin(), from.end());
}

void FrontierStates::add(const WalkState &walk, int64_t picoseconds,
                         Step step) {
  size_t slot = find(walk.live);
  if (slots[slot] == Empty) {
    slots[slot] = states.size();
    states.push_back(
        {picoseconds, step, values.size(), values.size() + walk.live.size()});
    values.insert(values.end(), walk.live.begin(), walk.live.end());
    return;
  }
  State &known = states[slots[slot]];
  if (picoseconds < known.picoseconds) {
    known.picoseconds = picoseconds;
    known.step = step;
  }
}

FrontierStates FrontierStates::cheapest(size_t limit) const {
  std::vector<size_t> order(states.size());
  std::iota(order.begin(), order.end(), 0);
  limit = std::min(limit, order.size());
  std::partial_sort(order.begin(), order.begin() + limit, order.end(),
                    [&](size_t a, size_t b) {
                      return std::tie(states[a].picoseconds, a) <
                             std::tie(states[b].picoseconds, b);
                    });
  FrontierStates result;
  for (size_t i = 0; i < limit; ++i) {
    State state = states[order[i]];
    std::span<const LiveValue> from = live(state);
    state.begin = result.values.size();
    result.values.insert(result.values.end(), from.begin(), from.end());
    state.end = result.values.size();
    result.states.push_back(state);
  }
  return result;
}

size_t FrontierStates::find(std::span<const LiveValue> wanted) {
  if (2 * states.size() >= slots.size())
    grow();
  size_t slot = hashOf(wanted) % slots.size();
  while (slots[slot] != Empty &&
         !std::ranges::equal(live(states[slots[slot]]), wanted))
    slot = (slot + 1) % slots.size();
  return slot;
}

void FrontierStates::grow() {
  slots.assign(std::max<size_t>(64, 4 * slots.size()), Empty);
  for (size_t i = 0; i < states.size(); ++i) {
    size_t slot = hashOf(live(states[i])) % slots.size();
    while (slots[slot] != Empty)
      slot = (slot + 1) % slots.size();
    slots[slot] = i;
  }
}

} // namespace monarch::planner
