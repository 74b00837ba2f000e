//===- StageCuts.cpp - where a pipeline is cut ----------------------------===//
#include "planner/search/StageCuts.h"

#include <algorithm>
#include <limits>

namespace monarch::planner {

/// Below this many narrow places every place is tried.
static constexpr size_t FewPlaces = 8;

CutPlaces cutPlaces(const StrategySpace &space, const SplitRules &rules) {
  CutPlaces places;
  const Graph &graph = space.graph();
  for (OpId op : walkedOps(space)) {
    const Op &entry = graph.op(op);
    const OpRule *rule = space.rule(op);
    bool viewOfParameter = rule && rule->follows && !entry.results.empty() &&
                           entry.results[0] != None &&
                           rules.parameterOf(entry.results[0]) >= 0;
    if (!viewOfParameter)
      places.ops.push_back(op);
  }
  return places;
}

std::vector<int> stagesFromCuts(const StrategySpace &space,
                                const CutPlaces &places,
                                const std::vector<size_t> &cuts) {
  const Graph &graph = space.graph();
  std::vector<int> stage(graph.ops.size(), 0);
  std::vector<bool> placed(graph.ops.size(), false);
  size_t next = 0;
  for (size_t i = 0; i < places.ops.size(); ++i) {
    while (next < cuts.size() && cuts[next] <= i)
      ++next;
    stage[places.ops[i]] = static_cast<int>(next);
    placed[places.ops[i]] = true;
  }
  // Views of parameters: the least stage of their readers, walked backwards.
  std::vector<int> leastReader(graph.values.size(),
                               std::numeric_limits<int>::max());
  for (size_t i = graph.ops.size(); i-- > 0;) {
    const Op &op = graph.ops[i];
    OpId id = static_cast<OpId>(i);
    if (op.phase != Phase::Forward || space.isCloned(id))
      continue;
    if (!placed[i]) {
      int least = std::numeric_limits<int>::max();
      for (ValueId result : op.results)
        if (result != None)
          least = std::min(least, leastReader[result]);
      stage[i] = least == std::numeric_limits<int>::max() ? 0 : least;
    }
    for (ValueId operand : op.operands)
      if (operand != None)
        leastReader[operand] = std::min(leastReader[operand], stage[i]);
  }
  return stage;
}

StageCutter::StageCutter(const StrategySpace &space, const CutPlaces &places,
                         const Assignment &assignment,
                         int64_t linkBytesPerSecond, int mostStages)
    : places(places), mostStages(mostStages),
      workBefore(places.ops.size() + 1, 0),
      hopPicoseconds(places.ops.size() + 1, 0) {
  const Graph &graph = space.graph();
  std::vector<bool> hasGradient(graph.values.size(), false);
  for (const Value &value : graph.values)
    for (ValueId primal : value.cotangentOf)
      hasGradient[primal] = true;
  // A value crosses every place after the op that makes it, up to the last
  // that reads it: as differences, then summed.
  std::vector<int64_t> place(graph.ops.size(), -1),
      bytes(places.ops.size() + 2);
  std::vector<int64_t> lastReader(graph.values.size(), -1);
  for (size_t i = 0; i < places.ops.size(); ++i) {
    OpId op = places.ops[i];
    place[op] = static_cast<int64_t>(i);
    workBefore[i + 1] = workBefore[i] + assignment.forwardPicoseconds[op] +
                        assignment.backwardPicoseconds[op];
    for (ValueId operand : graph.op(op).operands)
      if (operand != None)
        lastReader[operand] = static_cast<int64_t>(i);
  }
  for (OpId op : places.ops)
    for (ValueId result : graph.op(op).results)
      if (result != None && lastReader[result] > place[op]) {
        int64_t moved =
            assignment.valueBytes[result] * (hasGradient[result] ? 2 : 1);
        bytes[place[op] + 1] += moved;
        bytes[lastReader[result] + 1] -= moved;
      }
  for (size_t i = 1; i < places.ops.size(); ++i) {
    bytes[i] += bytes[i - 1];
    hopPicoseconds[i] = picosecondsFor(bytes[i], linkBytesPerSecond);
  }
  // To cut where less crosses than on either side is enough: to move a cut to
  // such a place costs a few ops of balance at most.
  for (size_t i = 1; i < places.ops.size(); ++i) {
    bool lessThanBefore = i == 1 || bytes[i] < bytes[i - 1];
    bool notMoreThanAfter =
        i + 1 == places.ops.size() || bytes[i] <= bytes[i + 1];
    if (lessThanBefore && notMoreThanAfter)
      narrow.push_back(i);
  }
  solve();
}

/// slowest[s][j]: the best that the first s + 1 stages can do when they end at
/// ends[j], for every number of stages at once.
void StageCutter::solve() {
  size_t count = places.ops.size();
  ends = narrow;
  if (ends.size() < FewPlaces) {
    ends.clear();
    for (size_t i = 1; i < count; ++i)
      ends.push_back(i);
  }
  ends.insert(ends.begin(), 0);
  ends.push_back(count);
  auto stageTime = [&](size_t i, size_t j) {
    return workBefore[ends[j]] - workBefore[ends[i]] + hopPicoseconds[ends[i]] +
           hopPicoseconds[ends[j]];
  };
  constexpr int64_t Never = std::numeric_limits<int64_t>::max();
  slowest.assign(1, std::vector<int64_t>(ends.size(), Never));
  from.assign(1, std::vector<size_t>(ends.size(), 0));
  for (size_t j = 1; j < ends.size(); ++j)
    slowest[0][j] = stageTime(0, j);
  size_t most = std::min(ends.size() - 1, static_cast<size_t>(mostStages));
  for (size_t s = 1; s < most; ++s) {
    slowest.emplace_back(ends.size(), Never);
    from.emplace_back(ends.size(), 0);
    for (size_t j = s + 1; j < ends.size(); ++j)
      for (size_t i = s; i < j; ++i) {
        int64_t time = std::max(slowest[s - 1][i], stageTime(i, j));
        if (time < slowest[s][j]) {
          slowest[s][j] = time;
          from[s][j] = i;
        }
      }
  }
}

std::optional<std::vector<size_t>> StageCutter::cut(int stages) const {
  if (stages < 1 || slowest.size() < static_cast<size_t>(stages))
    return std::nullopt;
  std::vector<size_t> cuts(stages - 1);
  size_t j = ends.size() - 1;
  for (int s = stages - 1; s > 0; --s) {
    j = from[s][j];
    cuts[s - 1] = ends[j];
  }
  return cuts;
}

} // namespace monarch::planner
