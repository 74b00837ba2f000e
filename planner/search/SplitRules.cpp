//===- SplitRules.cpp - which choices a tp axis allows --------------------===//
#include "planner/search/SplitRules.h"

#include <algorithm>
#include <array>

namespace monarch::planner {

namespace {

/// Ops that a degree is about, by name: no rule tells a head from a row.
constexpr std::string_view AttentionOp = "monarch::attention";
constexpr std::string_view HeadLabel = "h";
constexpr std::array<std::string_view, 5> Products = {
    "aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm",
    "aten::convolution"};

bool isProduct(const Op &op) {
  return std::find(Products.begin(), Products.end(), op.name) != Products.end();
}

} // namespace

SplitRules::SplitRules(const StrategySpace &space)
    : space(space), rowChoices(space.graph().ops.size(), 0) {
  findParameters();
  const Graph &graph = space.graph();
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    OpId id = static_cast<OpId>(i);
    const OpRule *rule = space.rule(id);
    if (graph.ops[i].phase != Phase::Forward || space.isCloned(id) ||
        (rule && rule->follows))
      continue;
    deciding.push_back(id);
    if (graph.ops[i].name == AttentionOp)
      attentions.push_back(id);
  }
  findRowChoices();
}

bool SplitRules::isAttention(OpId op) const {
  return space.graph().op(op).name == AttentionOp;
}

void SplitRules::findParameters() {
  const Graph &graph = space.graph();
  parameterRoots.assign(graph.values.size(), -1);
  for (size_t p = 0; p < graph.parameters.size(); ++p)
    parameterRoots[graph.parameters[p].value] = static_cast<int>(p);
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const Op &op = graph.ops[i];
    const OpRule *rule = space.rule(static_cast<OpId>(i));
    if (op.phase == Phase::Forward && rule && rule->follows &&
        op.operands.size() == 1 && op.results.size() == 1)
      parameterRoots[op.results[0]] = parameterRoots[op.operands[0]];
  }
}

/// The split of the rows goes from the inputs through the graph: of each op the
/// choice that takes its operands as they come.
void SplitRules::findRowChoices() {
  const Graph &graph = space.graph();
  std::vector<std::optional<AxisState>> rows(graph.values.size());
  for (const Input &input : graph.inputs) {
    const Value &value = graph.value(input.value);
    for (size_t d = 0; d < value.shape.size() && !rows[input.value]; ++d) {
      bool holdsRows = graph.dynamicBatch
                           ? value.batch[d] != 0
                           : d == 0 && value.shape[d] == graph.unitRows;
      const DimStructure &dim = space.structure(input.value)[d];
      if (holdsRows && dim.sections.size() == 1 &&
          !dim.sections[0].factors.empty())
        rows[input.value] = AxisState::split(static_cast<int>(d), {0});
    }
  }
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const Op &op = graph.ops[i];
    OpId id = static_cast<OpId>(i);
    if (op.phase != Phase::Forward || space.isCloned(id))
      continue;
    const std::vector<Choice> &choices = space.choices(id);
    for (size_t c = 1; c < choices.size() && rowChoices[i] == 0; ++c) {
      const Column &column = space.columnOf(id, static_cast<int>(c));
      bool fits = !choices[c].labels.empty();
      bool any = false;
      for (size_t k = 0; k < op.operands.size() && fits; ++k) {
        if (op.operands[k] == None || !rows[op.operands[k]])
          continue;
        any = true;
        fits = column.operands[k] == *rows[op.operands[k]];
      }
      if (fits && any)
        rowChoices[i] = static_cast<int>(c);
    }
    const Column &column = space.columnOf(id, rowChoices[i]);
    for (size_t k = 0; k < op.results.size(); ++k)
      if (op.results[k] != None && column.results[k].isSplit())
        rows[op.results[k]] = column.results[k];
  }
}

bool SplitRules::splitsHeads(OpId op, int choice) const {
  const std::vector<SlotLabel> &labels = space.choices(op)[choice].labels;
  return std::any_of(labels.begin(), labels.end(), [](const SlotLabel &label) {
    return label.label == HeadLabel;
  });
}

bool SplitRules::splitsWeight(OpId id, int choice) const {
  const Op &op = space.graph().op(id);
  const Column &column = space.columnOf(id, choice);
  for (size_t k = 0; k < op.operands.size(); ++k)
    if (op.operands[k] != None && parameterRoots[op.operands[k]] >= 0 &&
        space.graph().value(op.operands[k]).shape.size() >= 2)
      return column.operands[k].isSplit();
  return false;
}

bool SplitRules::leavesBlocks(OpId id, const MeshPlan &plan,
                              const std::vector<int> &before, int choice,
                              bool evenly) const {
  const Op &op = space.graph().op(id);
  const Column &column = space.columnOf(id, choice);
  int firstAxis = plan.dataAxes;
  int64_t ranks = plan.mesh.axes[firstAxis + before.size()].size;

  auto hasBlocks = [&](ValueId value, auto stateOf) {
    const AxisState &state = stateOf(column);
    if (value == None || !state.isSplit())
      return true;
    const DimStructure &dim = space.structure(value)[state.dim];
    for (size_t s = 0; s < state.factors.size(); ++s) {
      if (state.factors[s] < 0)
        continue;
      int64_t extent = dim.sections[s].factors[state.factors[s]];
      int64_t parts = ranks;
      for (size_t i = 0; i < before.size(); ++i) {
        const AxisState &other = stateOf(space.columnOf(id, before[i]));
        if (other.isSplit() && other.dim == state.dim &&
            other.factors[s] == state.factors[s])
          parts *= plan.mesh.axes[firstAxis + i].size;
      }
      if (parts > extent || (evenly && extent % parts != 0))
        return false;
    }
    return true;
  };
  for (size_t k = 0; k < op.operands.size(); ++k)
    if (!hasBlocks(op.operands[k], [k](const Column &c) -> const AxisState & {
          return c.operands[k];
        }))
      return false;
  for (size_t k = 0; k < op.results.size(); ++k)
    if (!hasBlocks(op.results[k], [k](const Column &c) -> const AxisState & {
          return c.results[k];
        }))
      return false;
  return true;
}

std::vector<int> SplitRules::allowed(OpId op, const MeshPlan &plan,
                                     const std::vector<int> &before) const {
  if (static_cast<int>(before.size()) < plan.rowAxes)
    return {rowChoices[op]};
  int count = static_cast<int>(space.choices(op).size());
  std::vector<int> required, free;
  bool attention = isAttention(op), product = isProduct(space.graph().op(op));
  for (int choice = 0; choice < count; ++choice) {
    bool heads = attention && splitsHeads(op, choice);
    if (!leavesBlocks(op, plan, before, choice, heads))
      continue;
    if (heads || (product && splitsWeight(op, choice)))
      required.push_back(choice);
    else
      free.push_back(choice);
  }
  if (!required.empty())
    return required;
  // An attention that cannot split its heads on this axis replicates there.
  return attention ? std::vector<int>{0} : free;
}

bool SplitRules::splitsSomewhere(OpId op, const MeshPlan &plan,
                                 std::vector<int> &choices) const {
  if (choices.size() == plan.mesh.axes.size() - plan.dataAxes)
    return false;
  for (int choice : allowed(op, plan, choices)) {
    if (choice != 0 && static_cast<int>(choices.size()) >= plan.rowAxes)
      return true;
    choices.push_back(choice);
    bool splits = splitsSomewhere(op, plan, choices);
    choices.pop_back();
    if (splits)
      return true;
  }
  return false;
}

bool SplitRules::canSplit(const MeshPlan &plan) const {
  if (plan.tensorAxes() == 0)
    return true;
  std::vector<int> choices;
  if (hasAttention())
    return std::all_of(attentions.begin(), attentions.end(), [&](OpId op) {
      return splitsSomewhere(op, plan, choices);
    });
  // Without attention: on each axis at least one product splits its weight.
  for (int axis = 0; axis < plan.tensorAxes(); ++axis) {
    bool any = false;
    for (OpId op : deciding) {
      if (any || !isProduct(space.graph().op(op)))
        continue;
      for (const std::vector<int> &choices : combinations(*this, op, plan, 64))
        any |= choices[plan.rowAxes + axis] != 0;
    }
    if (!any)
      return false;
  }
  return true;
}

namespace {

void extend(const SplitRules &rules, OpId op, const MeshPlan &plan,
            bool changeOnce, std::vector<int> &choices, size_t limit,
            std::vector<std::vector<int>> &result) {
  size_t axes = plan.mesh.axes.size() - plan.dataAxes;
  if (result.size() > limit)
    return;
  if (choices.size() == axes) {
    result.push_back(choices);
    return;
  }
  size_t first = plan.rowAxes, at = choices.size();
  bool changed = at >= first + 2 && choices[first] != choices[at - 1];
  std::vector<int> allowed = rules.allowed(op, plan, choices);
  if (changeOnce && changed &&
      std::find(allowed.begin(), allowed.end(), choices[at - 1]) !=
          allowed.end())
    allowed = {choices[at - 1]};
  for (int choice : allowed) {
    choices.push_back(choice);
    extend(rules, op, plan, changeOnce, choices, limit, result);
    choices.pop_back();
  }
}

} // namespace

std::vector<std::vector<int>> combinations(const SplitRules &rules, OpId op,
                                           const MeshPlan &plan, size_t limit) {
  std::vector<std::vector<int>> result;
  std::vector<int> choices;
  extend(rules, op, plan, /*changeOnce=*/false, choices, limit, result);
  if (result.size() > limit) {
    result.clear();
    extend(rules, op, plan, /*changeOnce=*/true, choices, size_t(-1) / 2,
           result);
  }
  return result;
}

} // namespace monarch::planner
