//===- OpOptions.cpp - a forward op with its backward, under one choice ---===//
#include "planner/search/OpOptions.h"

#include <algorithm>

namespace monarch::planner {

namespace {

/// The backward of one op under one choice per axis.
class GroupDeriver {
public:
  GroupDeriver(const StrategySpace &space, const OpCosts &costs, OpId id,
               const std::vector<int> &choice)
      : space(space), graph(space.graph()), costs(costs), id(id),
        op(graph.op(id)), axes(choice.size()) {
    option.choice = choice;
  }

  OpOption run() {
    std::vector<Column> columns;
    for (int choice : option.choice)
      columns.push_back(space.columnOf(id, choice));
    OpLayouts forward = layoutsOf(op, columns);
    for (const Layout &layout : forward.operands)
      option.operands.push_back(numberOf(layout));
    for (const Layout &layout : forward.results) {
      option.results.push_back(numberOf(layout));
      option.resultDuals.push_back(costs.numbers().dual(option.results.back()));
    }
    option.operandCotangents.assign(op.operands.size(), NoLayout);
    option.resultCotangents.assign(op.results.size(), NoLayout);
    option.forwardPicoseconds = costs.opPicoseconds(id, forward);
    for (OpId backward : space.backwardOps(id))
      deriveBackward(backward);
    return std::move(option);
  }

private:
  int numberOf(const Layout &layout) const {
    return costs.numbers().of(layout);
  }

  OpLayouts layoutsOf(const Op &of, const std::vector<Column> &columns) const {
    OpLayouts layouts;
    layouts.operands.assign(of.operands.size(), Layout::replicated(axes));
    layouts.results.assign(of.results.size(), Layout::replicated(axes));
    for (size_t axis = 0; axis < axes; ++axis) {
      for (size_t k = 0; k < of.operands.size(); ++k)
        layouts.operands[k].states[axis] = columns[axis].operands[k];
      for (size_t k = 0; k < of.results.size(); ++k)
        layouts.results[k].states[axis] = columns[axis].results[k];
      layouts.labels.push_back(columns[axis].labels);
    }
    for (Layout &layout : layouts.operands)
      layout = canonical(std::move(layout));
    for (Layout &layout : layouts.results)
      layout = canonical(std::move(layout));
    return layouts;
  }

  void deriveBackward(OpId backward) {
    const Op &gradient = graph.op(backward);
    std::vector<Column> columns;
    for (size_t axis = 0; axis < axes; ++axis) {
      const Choice &choice = space.choices(id)[option.choice[axis]];
      std::vector<SlotLabel> labels = space.inherited(backward, choice);
      columns.push_back(
          labels.empty()
              ? space.column(backward, {}, passingGroup(backward, axis))
              : space.column(backward, labels, -1));
    }
    OpLayouts layouts = layoutsOf(gradient, columns);
    option.backwardPicoseconds += costs.opPicoseconds(backward, layouts);
    for (size_t k = 0; k < gradient.operands.size(); ++k)
      takeOperand(backward, k, layouts.operands[k]);
    for (size_t k = 0; k < gradient.results.size(); ++k) {
      ValueId value = gradient.results[k];
      if (value == None)
        continue;
      inside[value] = layouts.results[k];
      for (ValueId primal : graph.value(value).cotangentOf)
        for (size_t i = 0; i < op.operands.size(); ++i)
          if (op.operands[i] == primal)
            option.operandCotangents[i] = numberOf(layouts.results[k]);
    }
  }

  // As DeriveLayouts, for partial values made by the same node.
  int passingGroup(OpId backward, size_t axis) const {
    const Op &gradient = graph.op(backward);
    const OpRule *rule = space.rule(backward);
    if (!rule)
      return -1;
    std::vector<bool> partial(gradient.operands.size(), false);
    for (size_t k = 0; k < gradient.operands.size(); ++k) {
      auto made = inside.find(gradient.operands[k]);
      partial[k] =
          made != inside.end() && made->second.states[axis].isPartial();
    }
    int best = -1, bestScore = 0;
    for (size_t g = 0; g < rule->linear.size(); ++g) {
      int covered = 0, others = 0;
      for (int k : rule->linear[g].operands)
        ++(partial[k] ? covered : others);
      int score = 2 * covered - others;
      if (covered > 0 && (best < 0 || score > bestScore)) {
        best = static_cast<int>(g);
        bestScore = score;
      }
    }
    return best;
  }

  void takeOperand(OpId backward, size_t k, const Layout &wanted) {
    ValueId value = graph.op(backward).operands[k];
    const OpRule *rule = space.rule(backward);
    if (value == None ||
        (rule && std::find(rule->shapeOnly.begin(), rule->shapeOnly.end(),
                           static_cast<int>(k)) != rule->shapeOnly.end()))
      return;
    int number = numberOf(wanted);
    auto refetch = [&](int from) {
      option.refetchPicoseconds +=
          costs.reshardPicoseconds(value, from, number);
    };
    if (auto made = inside.find(value); made != inside.end())
      return refetch(numberOf(made->second));
    for (size_t i = 0; i < op.results.size(); ++i)
      if (op.results[i] == value)
        return refetch(option.results[i]);
    for (size_t i = 0; i < op.operands.size(); ++i)
      if (op.operands[i] == value && option.operands[i] != number)
        return refetch(option.operands[i]);
    for (ValueId primal : graph.value(value).cotangentOf)
      for (size_t i = 0; i < op.results.size(); ++i)
        if (op.results[i] == primal)
          option.resultCotangents[i] = number;
  }

  const StrategySpace &space;
  const Graph &graph;
  const OpCosts &costs;
  OpId id;
  const Op &op;
  size_t axes;
  OpOption option;
  /// Values made by the backward ops so far.
  std::map<ValueId, Layout> inside;
};

} // namespace

OpOption OpOptions::derive(OpId op, const std::vector<int> &choice) const {
  return GroupDeriver(space, costs, op, choice).run();
}

const std::vector<OpOption> &OpOptions::of(OpId op, size_t limit) const {
  auto [entry, isNew] = optionsOfClass.try_emplace({classes[op], limit});
  if (isNew)
    for (const std::vector<int> &choice : combinations(rules, op, plan, limit))
      entry->second.push_back(derive(op, choice));
  return entry->second;
}

const OpOption &OpOptions::under(OpId op,
                                 const std::vector<int> &choice) const {
  auto [entry, isNew] = underChoice.try_emplace({classes[op], choice});
  if (isNew)
    entry->second = derive(op, choice);
  return entry->second;
}

const OpOption &OpOptions::matching(OpId op, int number, bool ofResult) const {
  auto [entry, isNew] =
      matched.try_emplace({classes[op], number, ofResult}, nullptr);
  if (!isNew)
    return *entry->second;
  const Layout &layout = costs.numbers()[number];
  const std::vector<Choice> &choices = space.choices(op);
  std::vector<int> choice(layout.states.size(), 0);
  for (size_t axis = 0; axis < choice.size(); ++axis)
    for (size_t c = 0; c < choices.size(); ++c) {
      const Column &column = space.columnOf(op, static_cast<int>(c));
      const std::vector<AxisState> &states =
          ofResult ? column.results : column.operands;
      if (!states.empty() && states[0] == layout.states[axis]) {
        choice[axis] = static_cast<int>(c);
        break;
      }
    }
  entry->second = &under(op, choice);
  return *entry->second;
}

const OpOption &OpOptions::following(OpId op, int operand) const {
  return matching(op, operand, /*ofResult=*/false);
}

const OpOption &OpOptions::wanting(OpId op, int result) const {
  return matching(op, result, /*ofResult=*/true);
}

} // namespace monarch::planner
