//===- FrontierStates.h - what the frontier programme knows after an op ---===//
//
// Of the states with equal live values the cheapest is kept, and of those the
// cheapest few. An op meets thousands: all their live values lie in one array,
// and a state is looked up before it is stored.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "planner/search/Walk.h"

#include <span>

namespace monarch::planner {

class FrontierStates {
public:
  /// How a state came about.
  struct Step {
    int parent = -1; // in the step before
    const OpOption *option = nullptr;
  };
  struct State {
    int64_t picoseconds = 0;
    Step step;
    size_t begin = 0, end = 0; // in `values`
  };

  size_t size() const { return states.size(); }
  const State &operator[](size_t index) const { return states[index]; }
  void clear();
  void load(size_t index, WalkState &walk) const;
  void add(const WalkState &walk, int64_t picoseconds, Step step);
  /// The cheapest, in order of cost, then of their coming.
  FrontierStates cheapest(size_t limit) const;

private:
  std::span<const LiveValue> live(const State &state) const {
    return {values.data() + state.begin, state.end - state.begin};
  }
  /// The slot with these live values, or the empty one that they belong to.
  size_t find(std::span<const LiveValue> wanted);
  void grow();

  std::vector<State> states;
  std::vector<LiveValue> values;
  /// Indices of states by their live values: open addressing.
  std::vector<size_t> slots;
};

} // namespace monarch::planner
