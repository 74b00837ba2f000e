//===- Frontier.cpp - the cheapest choices of all ops on one mesh ---------===//
#include "planner/search/Frontier.h"
#include "planner/search/FrontierStates.h"

#include <algorithm>

namespace monarch::planner {

std::vector<OpId> walkedOps(const StrategySpace &space) {
  std::vector<OpId> ops;
  const Graph &graph = space.graph();
  for (size_t i = 0; i < graph.ops.size(); ++i)
    if (graph.ops[i].phase == Phase::Forward &&
        !space.isCloned(static_cast<OpId>(i)))
      ops.push_back(static_cast<OpId>(i));
  return ops;
}

std::optional<RepeatedBlock>
findRepeatedBlock(const std::vector<int> &classes) {
  std::optional<RepeatedBlock> best;
  size_t bestCovered = 0;
  for (size_t period = 1; period * 3 <= classes.size(); ++period)
    for (size_t begin = 0; begin + period < classes.size();) {
      size_t end = begin;
      while (end + period < classes.size() &&
             classes[end] == classes[end + period])
        ++end;
      size_t count = (end - begin) / period + 1;
      if (count >= 3 && count * period > bestCovered) {
        best = RepeatedBlock{begin, period, count};
        bestCovered = count * period;
      }
      begin = end + 1;
    }
  return best;
}

namespace {

bool isFollower(const StrategySpace &space, OpId op) {
  const OpRule *rule = space.rule(op);
  return rule && rule->follows;
}

/// What is walked of the forward ops, how much each counts, and which op of the
/// walk stands for each op of the model.
struct Sequence {
  std::vector<OpId> all;
  std::vector<OpId> walked;
  std::vector<int64_t> weight;
  std::vector<size_t> standIn; // all -> walked
};

Sequence makeSequence(const StrategySpace &space,
                      const std::vector<int> &classes, Walker &walker) {
  const Graph &graph = space.graph();
  Sequence sequence;
  sequence.all = walkedOps(space);
  std::vector<int> ofAll;
  for (OpId op : sequence.all)
    ofAll.push_back(classes[op]);
  std::optional<RepeatedBlock> block = findRepeatedBlock(ofAll);
  size_t skipBegin = sequence.all.size(), skipEnd = skipBegin;
  if (block) {
    skipBegin = block->begin + 2 * block->period;
    skipEnd = block->begin + block->count * block->period;
  }
  for (size_t i = 0; i < sequence.all.size(); ++i) {
    if (i >= skipBegin && i < skipEnd) {
      size_t stand =
          skipBegin - block->period + (i - skipBegin) % block->period;
      sequence.standIn.push_back(stand);
      const Op &op = graph.op(sequence.all[i]);
      const Op &instead = graph.op(sequence.walked[stand]);
      for (size_t r = 0; r < op.results.size(); ++r)
        if (op.results[r] != None && instead.results[r] != None)
          walker.setAlias(op.results[r], instead.results[r]);
      continue;
    }
    bool second = block && i >= skipBegin - block->period && i < skipBegin;
    sequence.standIn.push_back(sequence.walked.size());
    sequence.walked.push_back(sequence.all[i]);
    sequence.weight.push_back(second ? static_cast<int64_t>(block->count) - 1
                                     : 1);
  }
  return sequence;
}

/// The path to a final state, as one option per walked op.
std::vector<const OpOption *>
pathTo(const std::vector<std::vector<FrontierStates::Step>> &steps,
       size_t last) {
  std::vector<const OpOption *> path(steps.size());
  size_t at = last;
  for (size_t step = steps.size(); step-- > 0;) {
    path[step] = steps[step][at].option;
    at = static_cast<size_t>(steps[step][at].parent);
  }
  return path;
}

} // namespace

std::vector<Assignment>
searchFrontier(const StrategySpace &space, const SplitRules &rules,
               const std::vector<int> &classes, const OpCosts &costs,
               const OpOptions &options, const FrontierLimits &limits) {
  const Graph &graph = space.graph();
  Walker walker(space, rules, costs, options);
  Sequence sequence = makeSequence(space, classes, walker);
  walker.setSequence(sequence.walked);
  std::vector<bool> decides(graph.ops.size(), false);
  for (OpId op : rules.decidingOps())
    decides[op] = true;
  size_t axes = 0;
  for (OpId op : rules.decidingOps()) {
    axes = options.of(op, limits.combinations)[0].choice.size();
    break;
  }

  std::vector<std::vector<FrontierStates::Step>> steps;
  FrontierStates frontier;
  frontier.add({}, 0, {});
  FrontierStates next;
  WalkState walk;
  for (size_t place = 0; place < sequence.walked.size(); ++place) {
    OpId op = sequence.walked[place];
    next.clear();
    const std::vector<OpOption> *own =
        decides[op] ? &options.of(op, limits.combinations) : nullptr;
    for (size_t from = 0; from < frontier.size(); ++from) {
      auto add = [&](const OpOption *option) {
        frontier.load(from, walk);
        int64_t picoseconds = frontier[from].picoseconds;
        if (option)
          picoseconds += sequence.weight[place] *
                         walker.apply(walk, op, *option, place).total();
        next.add(walk, picoseconds, {static_cast<int>(from), option});
      };
      if (walker.isViewOfParameter(op)) {
        add(nullptr);
      } else if (own) {
        for (const OpOption &option : *own)
          add(&option);
      } else {
        frontier.load(from, walk);
        add(&walker.follow(op, walk, axes));
      }
    }
    frontier = next.cheapest(limits.states);
    std::vector<FrontierStates::Step> &step = steps.emplace_back();
    for (size_t i = 0; i < frontier.size(); ++i)
      step.push_back(frontier[i].step);
  }

  std::vector<Assignment> result;
  for (size_t last = 0;
       last < frontier.size() && result.size() < limits.assignments; ++last) {
    std::vector<const OpOption *> path = pathTo(steps, last);
    std::vector<std::vector<int>> choice(graph.ops.size());
    for (size_t i = 0; i < sequence.all.size(); ++i)
      if (decides[sequence.all[i]])
        choice[sequence.all[i]] = path[sequence.standIn[i]]->choice;
    result.push_back(
        evaluate(space, rules, costs, options, std::move(choice), axes));
  }
  return result;
}

Assignment evaluate(const StrategySpace &space, const SplitRules &rules,
                    const OpCosts &costs, const OpOptions &options,
                    std::vector<std::vector<int>> choice, size_t axes) {
  const Graph &graph = space.graph();
  Walker walker(space, rules, costs, options);
  std::vector<OpId> ops = walkedOps(space);
  walker.setSequence(ops);
  Assignment assignment;
  assignment.choice = std::move(choice);
  assignment.forwardPicoseconds.assign(graph.ops.size(), 0);
  assignment.backwardPicoseconds.assign(graph.ops.size(), 0);
  assignment.valueBytes.assign(graph.values.size(), 0);
  WalkState state;
  for (size_t i = 0; i < ops.size(); ++i) {
    OpId op = ops[i];
    if (walker.isViewOfParameter(op))
      continue;
    const OpOption &option =
        assignment.choice[op].size() == axes && !isFollower(space, op)
            ? options.under(op, assignment.choice[op])
            : walker.follow(op, state, axes);
    OpCost cost = walker.apply(state, op, option, i);
    assignment.forwardPicoseconds[op] = cost.forward();
    assignment.backwardPicoseconds[op] = cost.backward();
    assignment.picoseconds += cost.total();
    for (size_t r = 0; r < option.results.size(); ++r)
      if (ValueId value = graph.op(op).results[r]; value != None)
        assignment.valueBytes[value] =
            costs.localBytes(value, costs.numbers()[option.results[r]]);
  }
  return assignment;
}

} // namespace monarch::planner
