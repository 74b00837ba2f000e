//===- Strategies.cpp - what may be split in a graph, and how -------------===//

#include "core/strategy/Strategies.h"

#include "core/strategy/OpKinds.h"

#include <algorithm>
#include <cassert>

namespace monarch {

struct StrategySpace::Impl {
  const Graph &graph;
  OpKinds kinds;
  /// Per op: backward ops of a forward op, in order.
  std::vector<std::vector<OpId>> backward;
  /// Per op: its group, and its place in it.
  std::vector<const LabelGroup *> group;
  std::vector<size_t> member;
  std::vector<bool> cloned;

  explicit Impl(const Graph &graph)
      : graph(graph), kinds(graph), backward(graph.ops.size()),
        group(graph.ops.size(), nullptr), member(graph.ops.size(), 0) {
    makeGroups();
    findClones();
  }

  bool belongsToForward(const Op &op) const {
    return op.phase == Phase::Backward && op.forward != None;
  }

  void makeGroups() {
    OpId count = static_cast<OpId>(graph.ops.size());
    for (OpId id = 0; id < count; ++id)
      if (const Op &op = graph.ops[id]; belongsToForward(op))
        backward[op.forward].push_back(id);
    for (OpId id = 0; id < count; ++id) {
      if (belongsToForward(graph.ops[id]))
        continue;
      std::vector<OpId> ops{id};
      ops.insert(ops.end(), backward[id].begin(), backward[id].end());
      const LabelGroup &shared = kinds.group(ops);
      for (size_t i = 0; i < ops.size(); ++i) {
        group[ops[i]] = &shared;
        member[ops[i]] = i;
      }
    }
  }

  void findClones() {
    std::vector<bool> usesParameter(graph.values.size());
    for (const Parameter &parameter : graph.parameters)
      usesParameter[parameter.value] = true;
    for (const Op &op : graph.ops) {
      bool uses =
          std::any_of(op.operands.begin(), op.operands.end(),
                      [&](ValueId value) { return usesParameter[value]; });
      for (ValueId result : op.results)
        if (result != None)
          usesParameter[result] = uses;
      cloned.push_back(op.phase == Phase::Forward && !uses);
    }
  }

  std::vector<int> numbersOf(OpId op,
                             const std::vector<SlotLabel> &labels) const {
    std::vector<int> numbers;
    for (const SlotLabel &label : labels) {
      numbers.push_back(kinds.kind(op).find(label));
      assert(numbers.back() != -1 && "a label of this op");
    }
    std::sort(numbers.begin(), numbers.end());
    return numbers;
  }
};

StrategySpace::StrategySpace(const Graph &graph)
    : impl(std::make_unique<Impl>(graph)) {}
StrategySpace::~StrategySpace() = default;
StrategySpace::StrategySpace(StrategySpace &&) noexcept = default;

const Graph &StrategySpace::graph() const { return impl->graph; }

const TensorStructure &StrategySpace::structure(ValueId value) const {
  return impl->kinds.structure(value);
}

const OpRule *StrategySpace::rule(OpId op) const {
  return impl->kinds.kind(op).rule;
}

const std::vector<Choice> &StrategySpace::choices(OpId op) const {
  static const std::vector<Choice> whole{{"whole", {}, -1}};
  return impl->member[op] == 0 ? impl->group[op]->choices() : whole;
}

int StrategySpace::findChoice(OpId op, std::string_view name) const {
  const std::vector<Choice> &all = choices(op);
  auto position =
      std::find_if(all.begin(), all.end(),
                   [&](const Choice &choice) { return choice.name == name; });
  return position == all.end() ? -1 : static_cast<int>(position - all.begin());
}

Column StrategySpace::column(OpId op, const std::vector<SlotLabel> &labels,
                             int linearGroup) const {
  return makeColumn(impl->kinds.kind(op), impl->numbersOf(op, labels),
                    linearGroup);
}

const Column &StrategySpace::columnOf(OpId op, int choice) const {
  assert(impl->member[op] == 0 && "a backward op has no choice of its own");
  return impl->group[op]->columns()[choice];
}

const std::vector<OpId> &StrategySpace::backwardOps(OpId forward) const {
  return impl->backward[forward];
}

std::vector<SlotLabel> StrategySpace::inherited(OpId backward,
                                                const Choice &choice) const {
  OpId forward = impl->graph.ops[backward].forward;
  assert(forward != None && "sums of cotangents choose for themselves");
  std::vector<int> labels = impl->group[backward]->closure(
      impl->numbersOf(forward, choice.labels), impl->member[backward]);
  const OpKind &kind = impl->kinds.kind(backward);
  std::vector<SlotLabel> result;
  if (isLegalSplit(kind, labels))
    for (int label : labels)
      result.push_back(kind.labels[label]);
  return result;
}

bool StrategySpace::isCloned(OpId op) const { return impl->cloned[op]; }

std::map<std::string, int> StrategySpace::opsWithoutRule() const {
  std::map<std::string, int> count;
  for (size_t id = 0; id < impl->graph.ops.size(); ++id)
    if (!rule(static_cast<OpId>(id)))
      ++count[impl->graph.ops[id].name];
  return count;
}

} // namespace monarch
