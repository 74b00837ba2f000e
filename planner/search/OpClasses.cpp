//===- OpClasses.cpp - which ops are alike --------------------------------===//
#include "planner/search/OpClasses.h"

#include <map>

namespace monarch::planner {

namespace {

struct ArgText {
  std::string operator()(std::monostate) const { return "-"; }
  std::string operator()(const OperandArg &a) const {
    return "o" + std::to_string(a.index);
  }
  std::string operator()(const OperandListArg &a) const {
    std::string text = "l";
    for (int index : a.indices)
      text += std::to_string(index) + ",";
    return text;
  }
  std::string operator()(bool a) const { return a ? "true" : "false"; }
  std::string operator()(int64_t a) const { return std::to_string(a); }
  std::string operator()(double a) const { return std::to_string(a); }
  std::string operator()(const std::string &a) const { return a; }
  std::string operator()(DType a) const { return std::string(toString(a)); }
  std::string operator()(const ResultSizes &a) const {
    return "r" + std::to_string(a.result);
  }
  std::string operator()(const ResultSize &a) const {
    return "r" + std::to_string(a.result) + "." + std::to_string(a.dim);
  }
  std::string operator()(const ResultsSizes &a) const {
    return "d" + std::to_string(a.dim);
  }
  std::string operator()(const std::vector<int64_t> &a) const {
    return list(a);
  }
  std::string operator()(const std::vector<double> &a) const { return list(a); }
  std::string operator()(const std::vector<bool> &a) const {
    return list(std::vector<int>(a.begin(), a.end()));
  }
  template <typename T> static std::string list(const std::vector<T> &values) {
    std::string text = "[";
    for (const T &value : values)
      text += std::to_string(value) + ",";
    return text + "]";
  }
};

/// What a group is, with its values numbered in the order of their first use.
class ClassKey {
public:
  ClassKey(const StrategySpace &space) : space(space), graph(space.graph()) {}

  std::string of(OpId id) {
    text.clear();
    numbers.clear();
    add(id);
    for (OpId backward : space.backwardOps(id))
      add(backward);
    return std::move(text);
  }

private:
  void add(OpId id) {
    const Op &op = graph.op(id);
    text += op.name + "(";
    bool isStream = false;
    for (const Arg &arg : op.args) {
      text += (isStream ? "stream" : std::visit(ArgText(), arg)) + ";";
      // Each op with randomness has its own stream, and is the same op for it.
      const auto *operand = std::get_if<OperandArg>(&arg);
      isStream = operand && graph.value(op.operands[operand->index]).kind ==
                                ValueKind::Random;
    }
    for (ValueId value : op.operands)
      addValue(value);
    text += ")";
    for (ValueId value : op.results)
      addValue(value);
  }

  void addValue(ValueId value) {
    if (value == None) {
      text += "none ";
      return;
    }
    auto [entry, isNew] =
        numbers.try_emplace(value, static_cast<int>(numbers.size()));
    text += std::to_string(entry->second);
    if (isNew) {
      text += toString(graph.value(value).type);
      for (const DimStructure &dim : space.structure(value)) {
        text += "/" + std::to_string(dim.size);
        for (const Section &section : dim.sections) {
          text += "|" + std::to_string(section.begin);
          for (int64_t factor : section.factors)
            text += "x" + std::to_string(factor);
        }
      }
      for (ValueId primal : graph.value(value).cotangentOf)
        if (auto known = numbers.find(primal); known != numbers.end())
          text += "~" + std::to_string(known->second);
    }
    text += " ";
  }

  const StrategySpace &space;
  const Graph &graph;
  std::string text;
  std::map<ValueId, int> numbers;
};

} // namespace

std::vector<int> classifyOps(const StrategySpace &space) {
  const Graph &graph = space.graph();
  std::vector<int> classes(graph.ops.size(), -1);
  std::map<std::string, int> known;
  ClassKey key(space);
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const Op &op = graph.ops[i];
    if (op.phase == Phase::Backward && op.forward != None)
      continue;
    classes[i] = known
                     .try_emplace(key.of(static_cast<OpId>(i)),
                                  static_cast<int>(known.size()))
                     .first->second;
  }
  return classes;
}

} // namespace monarch::planner
