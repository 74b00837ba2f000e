//===- StageCut.cpp - layers of pipeline stages ---------------------------===//
#include "planner/choose/StageCut.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

namespace monarch::planner {

std::vector<int64_t> cutStages(const StageCutProblem &problem) {
  const int64_t stages = problem.stages, layers = problem.layers;
  const int64_t even = layers / stages;
  const int64_t low = std::max<int64_t>(0, even - problem.slack);
  const int64_t high = (layers + stages - 1) / stages + problem.slack;
  struct State {
    double slowest = std::numeric_limits<double>::infinity();
    /// Layers away from even, over all stages.
    int64_t apart = 0;
    int64_t count = -1;
  };
  // states[stage][end]: the stages up to this one hold the layers before end.
  std::vector<std::vector<State>> states(
      static_cast<size_t>(stages),
      std::vector<State>(static_cast<size_t>(layers + 1)));
  for (int64_t stage = 0; stage < stages; ++stage)
    for (int64_t first = stage * low; first <= std::min(layers, stage * high);
         ++first) {
      State before;
      before.slowest = 0;
      if (stage > 0)
        before =
            states[static_cast<size_t>(stage - 1)][static_cast<size_t>(first)];
      else if (first > 0)
        break;
      if (before.count < 0 && stage > 0)
        continue;
      const int64_t behind = stages - 1 - stage;
      for (int64_t count = low; count <= high; ++count) {
        const int64_t left = layers - first - count;
        if (left < behind * low || left > behind * high)
          continue;
        const double slowest =
            std::max(before.slowest, problem.seconds(stage, first, count));
        const int64_t apart = before.apart + std::abs(count - even);
        State &state = states[static_cast<size_t>(stage)]
                             [static_cast<size_t>(first + count)];
        const bool isBetter = slowest < state.slowest ||
                              (slowest == state.slowest && apart < state.apart);
        if (isBetter && problem.fits(stage, first, count))
          state = {slowest, apart, count};
      }
    }
  std::vector<int64_t> cut(static_cast<size_t>(stages));
  int64_t end = layers;
  for (int64_t stage = stages; stage-- > 0;) {
    const int64_t count =
        states[static_cast<size_t>(stage)][static_cast<size_t>(end)].count;
    if (count < 0)
      return {};
    cut[static_cast<size_t>(stage)] = count;
    end -= count;
  }
  return cut;
}

} // namespace monarch::planner
