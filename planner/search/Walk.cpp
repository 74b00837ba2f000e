//===- Walk.cpp - how values lie while ops are decided one by one ---------===//
#include "planner/search/Walk.h"

#include <algorithm>

namespace monarch::planner {

namespace {

LiveValue *find(WalkState &state, ValueId value) {
  for (LiveValue &entry : state.live)
    if (entry.value == value)
      return &entry;
  return nullptr;
}

void insert(WalkState &state, LiveValue value) {
  auto place = std::lower_bound(
      state.live.begin(), state.live.end(), value.value,
      [](const LiveValue &a, ValueId b) { return a.value < b; });
  state.live.insert(place, value);
}

} // namespace

int LayoutSets::with(int set, int layout) {
  std::vector<int> larger = sets[set];
  larger.insert(std::lower_bound(larger.begin(), larger.end(), layout), layout);
  auto [entry, isNew] =
      numbers.try_emplace(larger, static_cast<int>(sets.size()));
  if (isNew)
    sets.push_back(std::move(larger));
  return entry->second;
}

Walker::Walker(const StrategySpace &space, const SplitRules &rules,
               const OpCosts &costs, const OpOptions &options)
    : space(space), graph(space.graph()), rules(rules), costs(costs),
      options(options), hasGradient(graph.values.size(), false),
      alias(graph.values.size()) {
  for (size_t v = 0; v < graph.values.size(); ++v) {
    alias[v] = static_cast<ValueId>(v);
    for (ValueId primal : graph.values[v].cotangentOf)
      hasGradient[primal] = true;
  }
}

void Walker::setSequence(const std::vector<OpId> &ops) {
  lastUse.assign(graph.values.size(), -1);
  for (size_t i = 0; i < ops.size(); ++i)
    for (ValueId operand : graph.op(ops[i]).operands)
      if (operand != None)
        lastUse[tracked(operand)] = static_cast<int64_t>(i);
}

bool Walker::isViewOfParameter(OpId op) const {
  const OpRule *rule = space.rule(op);
  const Op &entry = graph.op(op);
  return rule && rule->follows && !entry.results.empty() &&
         entry.results[0] != None && rules.parameterOf(entry.results[0]) >= 0;
}

/// A view of a parameter stands for the parameter.
ValueId Walker::tracked(ValueId value) const {
  int parameter = rules.parameterOf(value);
  return parameter >= 0 ? graph.parameters[parameter].value : alias[value];
}

const OpOption &Walker::follow(OpId op, const WalkState &state,
                               size_t axes) const {
  const Op &entry = graph.op(op);
  if (!entry.operands.empty() && entry.operands[0] != None)
    for (const LiveValue &value : state.live)
      if (value.value == tracked(entry.operands[0]))
        return options.following(op, value.home);
  return options.following(op, costs.numbers().of(Layout::replicated(axes)));
}

LiveValue Walker::makeLive(ValueId value, size_t result,
                           const OpOption &option) const {
  LiveValue made{value, option.results[result], NoLayout, 0};
  if (hasGradient[value])
    made.cotangent = option.resultCotangents[result] != NoLayout
                         ? option.resultCotangents[result]
                         : option.resultDuals[result];
  return made;
}

/// The first reader decides how the parameter lies, later ones reshard.
int64_t Walker::readParameter(WalkState &state, ValueId value, int wanted) {
  while (graph.value(value).producer != None) {
    OpId view = graph.value(value).producer;
    wanted = options.wanting(view, wanted).operands[0];
    value = graph.op(view).operands[0];
  }
  wanted = costs.numbers().dual(wanted);
  if (LiveValue *known = find(state, value))
    return fetch(*known, wanted);
  insert(state, LiveValue{value, wanted, NoLayout, 0});
  return 0;
}

int64_t Walker::fetch(LiveValue &value, int wanted) {
  const std::vector<int> &copies = copySets[value.copies];
  if (wanted == value.home ||
      std::binary_search(copies.begin(), copies.end(), wanted))
    return 0;
  int64_t cheapest = costs.reshardPicoseconds(value.value, value.home, wanted);
  for (int copy : copies)
    cheapest =
        std::min(cheapest, costs.reshardPicoseconds(value.value, copy, wanted));
  value.copies = copySets.with(value.copies, wanted);
  return cheapest;
}

void Walker::readValue(WalkState &state, const Op &op, size_t operand,
                       const OpOption &option, OpCost &cost) {
  LiveValue *value = find(state, tracked(op.operands[operand]));
  if (!value) // a leaf or a clone: read as it is wanted
    return;
  cost.fetch += fetch(*value, option.operands[operand]);
  if (value->cotangent == NoLayout)
    return;
  int given = option.operandCotangents[operand];
  // Where no op makes it, the cotangent of the result is passed on as it is.
  if (given == NoLayout && !option.results.empty() && op.results[0] != None &&
      hasGradient[op.results[0]] &&
      graph.value(op.results[0]).shape ==
          graph.value(op.operands[operand]).shape)
    given = option.resultDuals[0];
  if (given != NoLayout)
    cost.cotangents +=
        costs.reshardPicoseconds(value->value, given, value->cotangent);
}

OpCost Walker::apply(WalkState &state, OpId id, const OpOption &option,
                     size_t place) {
  const Op &op = graph.op(id);
  const OpRule *rule = space.rule(id);
  OpCost cost{option.forwardPicoseconds, option.backwardPicoseconds, 0,
              option.refetchPicoseconds};
  for (size_t k = 0; k < op.operands.size(); ++k) {
    if (op.operands[k] == None ||
        (rule && std::find(rule->shapeOnly.begin(), rule->shapeOnly.end(),
                           static_cast<int>(k)) != rule->shapeOnly.end()))
      continue;
    if (rules.parameterOf(op.operands[k]) >= 0)
      cost.fetch += readParameter(state, op.operands[k], option.operands[k]);
    else
      readValue(state, op, k, option, cost);
  }
  int64_t at = static_cast<int64_t>(place);
  std::erase_if(state.live, [&](const LiveValue &value) {
    return lastUse[value.value] <= at;
  });
  for (size_t r = 0; r < op.results.size(); ++r)
    if (op.results[r] != None && lastUse[op.results[r]] > at)
      insert(state, makeLive(op.results[r], r, option));
  return cost;
}

} // namespace monarch::planner
