//===- LabelGroup.cpp - labels of a forward op and its backward ops -------===//

#include "core/strategy/LabelGroup.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

namespace monarch {

namespace {

/// A label with several sections has a candidate for each combination of their
/// factors, up to this many; beyond, only the uniform ones.
constexpr size_t maxCombinations = 16;

/// Label numbers of one name: per section, factors outermost first.
using FactorsBySection = std::vector<std::vector<int>>;

std::vector<FactorsBySection> labelsByName(const OpKind &kind) {
  std::vector<FactorsBySection> result;
  for (size_t i = 0; i < kind.labels.size(); ++i) {
    bool sameName = i > 0 && kind.labels[i].label == kind.labels[i - 1].label;
    if (!sameName)
      result.emplace_back();
    if (!sameName || kind.labels[i].section != kind.labels[i - 1].section)
      result.back().emplace_back();
    result.back().back().push_back(static_cast<int>(i));
  }
  return result;
}

/// One factor per section, in every combination or in the uniform ones.
std::vector<std::vector<int>> combinations(const FactorsBySection &sections) {
  size_t count = 1, most = 0;
  for (const std::vector<int> &factors : sections) {
    count = std::min(count * factors.size(), maxCombinations + 1);
    most = std::max(most, factors.size());
  }
  std::vector<std::vector<int>> result;
  if (count > maxCombinations) {
    for (size_t f = 0; f < most; ++f) {
      result.emplace_back();
      for (const std::vector<int> &factors : sections)
        result.back().push_back(factors[std::min(f, factors.size() - 1)]);
    }
    return result;
  }
  result.emplace_back();
  for (const std::vector<int> &factors : sections) {
    std::vector<std::vector<int>> longer;
    for (const std::vector<int> &start : result)
      for (int factor : factors) {
        longer.push_back(start);
        longer.back().push_back(factor);
      }
    result = std::move(longer);
  }
  return result;
}

/// Sums of integers and booleans are never left partial.
bool isFloatingGroup(const OpKind &kind, const LinearGroup &group) {
  return std::all_of(group.operands.begin(), group.operands.end(),
                     [&](int i) { return isFloating(kind.types[i]); }) &&
         std::all_of(group.partialResults.begin(), group.partialResults.end(),
                     [&](int i) {
                       return isFloating(kind.types[kind.operandCount + i]);
                     });
}

} // namespace

std::string splitName(const OpKind &kind, const std::vector<int> &labels) {
  std::string text;
  for (size_t begin = 0, end = 0; begin < labels.size(); begin = end) {
    const std::string &name = kind.labels[labels[begin]].label;
    while (end < labels.size() && kind.labels[labels[end]].label == name)
      ++end;
    bool isAlone = true, isUniform = true;
    for (const SlotLabel &label : kind.labels)
      isAlone &= label.label != name || label.factor == 0;
    for (size_t i = begin; i < end; ++i)
      isUniform &=
          kind.labels[labels[i]].factor == kind.labels[labels[begin]].factor;
    text += (text.empty() ? "" : "+") + name;
    if (isAlone)
      continue;
    if (isUniform)
      text += "." + std::to_string(kind.labels[labels[begin]].factor);
    else
      for (size_t i = begin; i < end; ++i)
        text += "." + std::to_string(kind.labels[labels[i]].section) + ":" +
                std::to_string(kind.labels[labels[i]].factor);
  }
  return text;
}

LabelGroup::LabelGroup(const Graph &graph, const std::vector<OpId> &ops,
                       const std::vector<const OpKind *> &kinds)
    : kinds(kinds) {
  unite(graph, ops);
  enumerate();
}

void LabelGroup::unite(const Graph &graph, const std::vector<OpId> &ops) {
  std::vector<int> firstNode;
  int nodeCount = 0;
  for (const OpKind *kind : kinds) {
    firstNode.push_back(nodeCount);
    nodeCount += static_cast<int>(kind->labels.size());
  }
  std::vector<int> parents(nodeCount);
  std::iota(parents.begin(), parents.end(), 0);
  auto find = [&](int node) {
    while (parents[node] != node)
      node = parents[node] = parents[parents[node]];
    return node;
  };
  auto merge = [&](int a, int b) {
    a = find(a);
    b = find(b);
    parents[std::max(a, b)] = std::min(a, b);
  };

  using ValueSlot = std::tuple<ValueId, int, int, int>;
  std::map<ValueSlot, int> nodeAt;
  for (size_t m = 0; m < ops.size(); ++m) {
    const Op &op = graph.ops[ops[m]];
    for (size_t port = 0; port < kinds[m]->slots.size(); ++port) {
      ValueId value = port < op.operands.size()
                          ? op.operands[port]
                          : op.results[port - op.operands.size()];
      for (const OpKind::LabeledSlot &slot : kinds[m]->slots[port]) {
        int node = firstNode[m] + slot.label;
        auto [position, isNew] = nodeAt.try_emplace(
            {value, slot.dim, slot.section, slot.factor}, node);
        if (!isNew)
          merge(position->second, node);
      }
    }
  }
  for (const auto &[slot, node] : nodeAt) {
    ValueSlot other = slot;
    for (ValueId primal : graph.values[std::get<0>(slot)].cotangentOf) {
      std::get<0>(other) = primal;
      if (auto position = nodeAt.find(other); position != nodeAt.end())
        merge(position->second, node);
    }
  }
  for (size_t m = 0; m < kinds.size(); ++m) {
    classes.emplace_back();
    for (size_t label = 0; label < kinds[m]->labels.size(); ++label)
      classes.back().push_back(find(firstNode[m] + static_cast<int>(label)));
  }
}

std::vector<int> LabelGroup::closure(const std::vector<int> &labels,
                                     size_t member) const {
  std::set<int> chosen;
  for (int label : labels)
    chosen.insert(classes[0][label]);
  std::vector<int> result;
  for (size_t label = 0; label < classes[member].size(); ++label)
    if (chosen.count(classes[member][label]))
      result.push_back(static_cast<int>(label));
  return result;
}

void LabelGroup::addChoice(Choice choice, const std::vector<int> &labels) {
  choiceColumns.push_back(makeColumn(*kinds[0], labels, choice.linearGroup));
  allChoices.push_back(std::move(choice));
}

void LabelGroup::enumerate() {
  const OpKind &kind = *kinds[0];
  addChoice({"whole", {}, -1}, {});
  if (!kind.rule)
    return;
  std::set<std::vector<int>> seen;
  for (const FactorsBySection &sections : labelsByName(kind)) {
    for (const std::vector<int> &candidate : combinations(sections)) {
      std::vector<int> labels = closure(candidate, 0);
      if (!isLegalSplit(kind, labels) || !seen.insert(labels).second)
        continue;
      Choice choice{splitName(kind, labels), {}, -1};
      for (int label : labels)
        choice.labels.push_back(kind.labels[label]);
      addChoice(std::move(choice), labels);
    }
  }
  for (size_t i = 0; i < kind.rule->linear.size(); ++i)
    if (isFloatingGroup(kind, kind.rule->linear[i]))
      addChoice({"pass" + std::to_string(i), {}, static_cast<int>(i)}, {});
}

} // namespace monarch
