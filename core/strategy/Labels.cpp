//===- Labels.cpp - labels of the slots of an op --------------------------===//

#include "core/strategy/Labels.h"

#include "core/strategy/Structure.h"

#include <algorithm>
#include <cassert>
#include <set>

namespace monarch {

int OpKind::find(const SlotLabel &label) const {
  auto position = std::lower_bound(labels.begin(), labels.end(), label);
  return position != labels.end() && *position == label
             ? static_cast<int>(position - labels.begin())
             : -1;
}

namespace {

std::vector<int64_t> shapeOf(const TensorStructure &structure) {
  std::vector<int64_t> shape;
  for (const DimStructure &dim : structure)
    shape.push_back(dim.size);
  return shape;
}

class Labeler {
public:
  explicit Labeler(OpKind &kind) : kind(kind) {}

  void run() {
    kind.slots.assign(kind.structures.size(), {});
    if (!kind.rule)
      return;
    if (kind.rule->isView)
      labelView();
    else
      labelDims();
    number();
  }

private:
  struct Entry {
    size_t port;
    int dim;
    int section;
    int factor;
    SlotLabel label;
  };

  void add(size_t port, int dim, int section, int factor, SlotLabel label) {
    entries.push_back({port, dim, section, factor, std::move(label)});
  }

  /// All slots of a dim, its first section being `firstSection` of the label.
  void addDim(size_t port, int dim, const std::string &name, int firstSection) {
    const DimStructure &structure = kind.structures[port][dim];
    for (size_t s = 0; s < structure.sections.size(); ++s)
      for (size_t f = 0; f < structure.sections[s].factors.size(); ++f)
        add(port, dim, s, f,
            {name, firstSection + static_cast<int>(s),
             static_cast<int64_t>(f)});
  }

  void labelDims() {
    std::map<std::string, const DimStructure *> whole;
    auto visit = [&](auto &&action) {
      for (size_t port = 0; port < kind.structures.size(); ++port)
        for (size_t i = 0; i < kind.structures[port].size(); ++i)
          if (const DimLabel &label = kind.dimLabels(port)[i];
              !label.name.empty())
            action(label, port, static_cast<int>(i));
    };
    visit([&](const DimLabel &label, size_t port, int dim) {
      if (label.end == -1)
        whole.emplace(label.name, &kind.structures[port][dim]);
    });
    visit([&](const DimLabel &label, size_t port, int dim) {
      if (label.end == -1)
        addDim(port, dim, label.name, 0);
      else if (auto parent = whole.find(label.name); parent != whole.end())
        if (int first = sectionsWithin(*parent->second, label.begin,
                                       kind.structures[port][dim]);
            first != -1)
          addDim(port, dim, label.name, first);
    });
  }

  /// Where the child's sections lie among the parent's, -1 if the parent has no
  /// such sections.
  static int sectionsWithin(const DimStructure &parent, int64_t begin,
                            const DimStructure &child) {
    for (size_t first = 0;
         first + child.sections.size() <= parent.sections.size(); ++first) {
      bool equal = true;
      for (size_t s = 0; equal && s < child.sections.size(); ++s) {
        const Section &outer = parent.sections[first + s];
        const Section &inner = child.sections[s];
        equal = outer.begin == inner.begin + begin &&
                outer.end == inner.end + begin &&
                outer.factors == inner.factors;
      }
      if (equal)
        return static_cast<int>(first);
    }
    return -1;
  }

  void labelView() {
    int number = 0;
    for (const RowMajorGroup &group : rowMajorGroups(
             shapeOf(kind.structures[0]), shapeOf(kind.structures[1]))) {
      std::string name = "g" + std::to_string(number++);
      if (group.isOneToOne()) {
        addDim(0, group.operandDims[0], name, 0);
        addDim(1, group.resultDims[0], name, 0);
        continue;
      }
      int matched = 0;
      std::vector<Digit> results = digits(1, group.resultDims);
      for (const Digit &operand : digits(0, group.operandDims))
        for (const Digit &result : results)
          if (operand.prefix == result.prefix &&
              operand.extent == result.extent) {
            SlotLabel label{name, 0, matched++};
            add(0, operand.dim, 0, operand.factor, label);
            add(1, result.dim, 0, result.factor, label);
          }
    }
  }

  /// A factor of a row-major product. Equal prefix and extent on both sides of
  /// a view: the same digit of the element's number.
  struct Digit {
    int64_t prefix;
    int64_t extent;
    int dim;
    int factor;
  };
  /// A dim in sections counts as one digit that nothing may match.
  std::vector<Digit> digits(size_t port, const std::vector<int> &dims) const {
    std::vector<Digit> result;
    int64_t prefix = 1;
    for (int dim : dims) {
      const DimStructure &structure = kind.structures[port][dim];
      if (structure.sections.size() == 1)
        for (size_t f = 0; f < structure.sections[0].factors.size(); ++f) {
          int64_t extent = structure.sections[0].factors[f];
          result.push_back({prefix, extent, dim, static_cast<int>(f)});
          prefix *= extent;
        }
      else
        prefix *= structure.size;
    }
    return result;
  }

  void number() {
    std::set<SlotLabel> sorted;
    for (const Entry &entry : entries)
      sorted.insert(entry.label);
    kind.labels.assign(sorted.begin(), sorted.end());
    for (const Entry &entry : entries)
      kind.slots[entry.port].push_back(
          {entry.dim, entry.section, entry.factor, kind.find(entry.label)});
  }

  OpKind &kind;
  std::vector<Entry> entries;
};

bool contains(const std::vector<int> &sorted, int number) {
  return std::binary_search(sorted.begin(), sorted.end(), number);
}

std::set<std::string> namesOf(const OpKind &kind,
                              const std::vector<int> &labels) {
  std::set<std::string> names;
  for (int label : labels)
    names.insert(kind.labels[label].label);
  return names;
}

/// The state of a port in which these labels are split: replicated if it has
/// none of them, nullopt if they do not fit one dim.
std::optional<AxisState> splitState(const OpKind &kind, size_t port,
                                    const std::vector<int> &labels) {
  AxisState state;
  for (const OpKind::LabeledSlot &slot : kind.slots[port]) {
    if (!contains(labels, slot.label))
      continue;
    if (!state.isSplit())
      state = AxisState::split(
          slot.dim, std::vector<int>(
                        kind.structures[port][slot.dim].sections.size(), -1));
    if (state.dim != slot.dim || state.factors[slot.section] != -1)
      return std::nullopt;
    state.factors[slot.section] = slot.factor;
  }
  // A section left whole would count once per rank where the dim is summed.
  if (std::find(state.factors.begin(), state.factors.end(), -1) !=
      state.factors.end())
    return std::nullopt;
  return state;
}

} // namespace

void labelSlots(OpKind &kind) { Labeler(kind).run(); }

bool isLegalSplit(const OpKind &kind, const std::vector<int> &labels) {
  if (labels.empty())
    return true;
  std::set<std::string> names = namesOf(kind, labels);
  for (const std::string &name : names)
    if (auto effect = kind.rule->effects.find(name);
        effect != kind.rule->effects.end() && effect->second.whole)
      return false;
  for (size_t port = 0; port < kind.structures.size(); ++port) {
    std::optional<AxisState> state = splitState(kind, port, labels);
    if (!state)
      return false;
    if (kind.rule->isView || state->isSplit())
      continue;
    for (size_t i = 0; i < kind.structures[port].size(); ++i)
      if (names.count(kind.dimLabels(port)[i].name))
        return false;
  }
  return true;
}

Column makeColumn(const OpKind &kind, const std::vector<int> &labels,
                  int linearGroup) {
  assert(labels.empty() || linearGroup == -1);
  std::vector<AxisState> states(kind.structures.size());
  std::set<std::string> names = namesOf(kind, labels);
  if (linearGroup != -1) {
    const LinearGroup &group = kind.rule->linear[linearGroup];
    for (int operand : group.operands)
      states[operand] = AxisState::partial();
    for (int result : group.partialResults)
      states[kind.operandCount + result] = AxisState::partial();
  }
  for (size_t port = 0; !labels.empty() && port < states.size(); ++port) {
    std::optional<AxisState> state = splitState(kind, port, labels);
    assert(state && "the split is legal");
    states[port] = *state;
    if (state->isSplit())
      continue;
    for (const std::string &name : names) {
      auto effect = kind.rule->effects.find(name);
      if (effect == kind.rule->effects.end())
        continue;
      bool isOperand = port < kind.operandCount;
      const std::vector<AxisStateKind> &kinds =
          isOperand ? effect->second.operands : effect->second.results;
      size_t index = isOperand ? port : port - kind.operandCount;
      if (!kinds.empty() && kinds[index] == AxisStateKind::Partial)
        states[port] = AxisState::partial();
    }
  }
  Column column;
  auto split = states.begin() + kind.operandCount;
  column.operands.assign(states.begin(), split);
  column.results.assign(split, states.end());
  column.labels.assign(names.begin(), names.end());
  return column;
}

} // namespace monarch
