//===- OpKinds.cpp - ops that share rule, structure and labels ------------===//

#include "core/strategy/OpKinds.h"

#include "core/strategy/Structure.h"

#include <cassert>
#include <unordered_map>

namespace monarch {

namespace {

/// Bytes that are equal exactly when the ops are, apart from which values they
/// have. Every part is preceded by its length or kind.
class KeyWriter {
public:
  std::string key;

  void add(int64_t number) {
    key.append(reinterpret_cast<const char *>(&number), sizeof number);
  }
  void add(double number) {
    key.append(reinterpret_cast<const char *>(&number), sizeof number);
  }
  void add(const std::string &text) {
    add(static_cast<int64_t>(text.size()));
    key += text;
  }
  template <typename T> void add(const std::vector<T> &list) {
    add(static_cast<int64_t>(list.size()));
    for (T element : list)
      addScalar(element);
  }
  void add(std::monostate) {}
  void add(bool flag) { addScalar(flag); }
  void add(DType type) { addScalar(type); }
  void add(const OperandArg &arg) { addScalar(arg.index); }
  void add(const OperandListArg &arg) { add(arg.indices); }
  void add(const ResultSizes &arg) { addScalar(arg.result); }
  void add(const ResultSize &arg) {
    addScalar(arg.result);
    addScalar(arg.dim);
  }
  void add(const ResultsSizes &arg) { addScalar(arg.dim); }
  void add(const Arg &arg) {
    addScalar(arg.index());
    std::visit([&](const auto &value) { add(value); }, arg);
  }

private:
  template <typename T> void addScalar(T value) {
    if constexpr (std::is_floating_point_v<T>)
      add(static_cast<double>(value));
    else
      add(static_cast<int64_t>(value));
  }
};

/// Values of an op's operands, then results.
std::vector<ValueId> portsOf(const Op &op) {
  std::vector<ValueId> ports = op.operands;
  ports.insert(ports.end(), op.results.begin(), op.results.end());
  return ports;
}

std::string keyOf(const Graph &graph, const Op &op) {
  KeyWriter writer;
  writer.add(op.name);
  writer.add(static_cast<int64_t>(op.args.size()));
  for (const Arg &arg : op.args)
    writer.add(arg);
  writer.add(static_cast<int64_t>(op.operands.size()));
  for (ValueId id : portsOf(op)) {
    writer.add(id != None);
    if (id == None)
      continue;
    writer.add(graph.values[id].type);
    writer.add(graph.values[id].shape);
  }
  return std::move(writer.key);
}

/// The rule labels every dim.
[[maybe_unused]] bool covers(const OpRule &rule, const Graph &graph,
                             const Op &op) {
  if (rule.isView)
    return op.operands.size() == 1 && op.results.size() == 1;
  auto coversSide = [&](const std::vector<ValueId> &values,
                        const std::vector<std::vector<DimLabel>> &labels) {
    if (values.size() != labels.size())
      return false;
    for (size_t i = 0; i < values.size(); ++i)
      if (labels[i].size() !=
          (values[i] == None ? 0 : graph.values[values[i]].shape.size()))
        return false;
    return true;
  };
  return coversSide(op.operands, rule.operands) &&
         coversSide(op.results, rule.results);
}

} // namespace

OpKinds::OpKinds(const Graph &graph) : graph(graph) {
  findRules();
  structures = inferStructures(graph, ruleOfOp);
  labelOps();
}

void OpKinds::findRules() {
  std::unordered_map<std::string, const OpRule *> byKey;
  for (const Op &op : graph.ops) {
    auto [position, isNew] = byKey.try_emplace(keyOf(graph, op), nullptr);
    if (isNew) {
      rules.push_back(ruleOf(graph, op));
      if (rules.back()) {
        assert(covers(*rules.back(), graph, op));
        position->second = &*rules.back();
      }
    }
    ruleOfOp.push_back(position->second);
  }
}

void OpKinds::labelOps() {
  std::map<TensorStructure, int> numbers;
  std::vector<int> structureNumber;
  for (const TensorStructure &structure : structures)
    structureNumber.push_back(
        numbers.try_emplace(structure, static_cast<int>(numbers.size()))
            .first->second);
  std::map<std::pair<const OpRule *, std::vector<int>>, int> byKey;
  for (size_t id = 0; id < graph.ops.size(); ++id) {
    const Op &op = graph.ops[id];
    std::vector<ValueId> ports = portsOf(op);
    std::vector<int> key{static_cast<int>(op.operands.size())};
    for (ValueId value : ports) {
      key.push_back(value == None ? None : structureNumber[value]);
      key.push_back(value == None ? None
                                  : static_cast<int>(graph.values[value].type));
    }
    auto [position, isNew] = byKey.try_emplace({ruleOfOp[id], std::move(key)},
                                               static_cast<int>(kinds.size()));
    if (isNew) {
      OpKind kind;
      kind.rule = ruleOfOp[id];
      kind.operandCount = op.operands.size();
      for (ValueId value : ports) {
        kind.structures.push_back(value == None ? TensorStructure{}
                                                : structures[value]);
        kind.types.push_back(value == None ? DType::Float32
                                           : graph.values[value].type);
      }
      labelSlots(kind);
      kinds.push_back(std::move(kind));
    }
    kindOf.push_back(position->second);
  }
}

const LabelGroup &OpKinds::group(const std::vector<OpId> &ops) {
  // Kinds, which ports share a value, and which value is whose cotangent.
  std::vector<int> key;
  std::vector<const OpKind *> members;
  std::map<ValueId, int> numbers;
  std::vector<ValueId> values;
  for (OpId op : ops) {
    key.push_back(kindOf[op]);
    members.push_back(&kinds[kindOf[op]]);
    for (ValueId value : portsOf(graph.ops[op])) {
      auto [position, isNew] =
          numbers.try_emplace(value, static_cast<int>(values.size()));
      if (isNew)
        values.push_back(value);
      key.push_back(position->second);
    }
  }
  for (ValueId value : values) {
    key.push_back(-1);
    if (value != None)
      for (ValueId primal : graph.values[value].cotangentOf)
        if (auto position = numbers.find(primal); position != numbers.end())
          key.push_back(position->second);
  }
  auto [position, isNew] =
      groupByKey.try_emplace(std::move(key), static_cast<int>(groups.size()));
  if (isNew)
    groups.emplace_back(graph, ops, members);
  return groups[position->second];
}

} // namespace monarch
