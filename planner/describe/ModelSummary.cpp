//===- ModelSummary.cpp - counting what a graph holds ---------------------===//
#include "planner/describe/ModelSummary.h"

#include "planner/search/OpClasses.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace monarch::planner {

int64_t ParameterGroup::elements() const {
  int64_t each = 1;
  for (int64_t size : shape)
    each *= size;
  return each * count;
}

int64_t ModelSummary::parameterCount(bool trainableOnly) const {
  int64_t total = 0;
  for (const ParameterGroup &group : parameters)
    if (group.trainable || !trainableOnly)
      total += group.elements();
  return total;
}

namespace {

bool isNumber(std::string_view text) {
  return !text.empty() &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::vector<std::string_view> components(std::string_view name) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin <= name.size();) {
    size_t end = std::min(name.find('.', begin), name.size());
    parts.push_back(name.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

/// "h.3.attn.weight" -> "h.*.attn.weight".
std::string withoutNumbers(std::string_view name) {
  std::string result;
  for (std::string_view part : components(name)) {
    result += result.empty() ? "" : ".";
    result += isNumber(part) ? std::string_view("*") : part;
  }
  return result;
}

//===- Parameters ---------------------------------------------------------===//

void addParameters(const Graph &graph, ModelSummary &summary) {
  for (const Parameter &parameter : graph.parameters) {
    const Value &value = graph.value(parameter.value);
    const std::string name = withoutNumbers(parameter.names.front());
    auto group =
        std::find_if(summary.parameters.begin(), summary.parameters.end(),
                     [&](const ParameterGroup &other) {
                       return other.name == name &&
                              other.shape == value.shape &&
                              other.type == value.type &&
                              other.trainable == parameter.trainable;
                     });
    if (group == summary.parameters.end())
      group = summary.parameters.insert(
          group, {name, value.shape, value.type, parameter.trainable, 0});
    ++group->count;
    if (parameter.names.size() > 1)
      summary.ties.push_back(parameter.names);
  }
  for (const Buffer &buffer : graph.buffers)
    summary.bufferBytes += byteCount(graph.value(buffer.value));
  for (ValueId constant : graph.constants)
    summary.bufferBytes += byteCount(graph.value(constant));
}

//===- Work and memory ----------------------------------------------------===//

std::vector<TensorType> typesOf(const Graph &graph,
                                const std::vector<ValueId> &values) {
  std::vector<TensorType> types;
  for (ValueId value : values)
    if (value != None)
      types.push_back({graph.value(value).type, graph.value(value).shape});
  return types;
}

std::vector<int64_t> flopsOfOps(const Graph &graph) {
  std::vector<int64_t> flops;
  for (const Op &op : graph.ops)
    flops.push_back(callCost(op.name, typesOf(graph, op.operands),
                             typesOf(graph, op.results))
                        .flops);
  return flops;
}

/// The value whose storage this one shares, through views.
ValueId storageOf(const Graph &graph, ValueId value) {
  for (;;) {
    OpId producer = graph.value(value).producer;
    if (producer == None || !isViewCall(graph.op(producer).name))
      return value;
    value = graph.op(producer).operands.front();
  }
}

int64_t savedBytes(const Graph &graph) {
  std::set<ValueId> saved;
  for (const Op &op : graph.ops) {
    if (op.phase != Phase::Backward)
      continue;
    for (ValueId operand : op.operands) {
      if (operand == None)
        continue;
      const Value &value = graph.value(operand);
      if (value.producer == None ||
          graph.op(value.producer).phase != Phase::Forward)
        continue;
      ValueId storage = storageOf(graph, operand);
      if (graph.value(storage).kind == ValueKind::Result)
        saved.insert(storage);
    }
  }
  int64_t bytes = 0;
  for (ValueId value : saved)
    bytes += byteCount(graph.value(value));
  return bytes;
}

//===- Repeated blocks ----------------------------------------------------===//

/// Ops of one module, by what they are.
struct Module {
  std::vector<int> classes;
  std::vector<OpId> ops;
};

/// The outermost numbered module of an op: "h" and 3 of "h.3.attn".
std::optional<std::pair<std::string, int64_t>>
numberedModule(const std::string &module) {
  size_t begin = 0;
  for (std::string_view part : components(module)) {
    if (isNumber(part) && part.size() < 10 && begin > 0)
      return std::pair(module.substr(0, begin - 1),
                       std::stoll(std::string(part)));
    begin += part.size() + 1;
  }
  return std::nullopt;
}

void addBlocks(const StrategySpace &space, const std::vector<int64_t> &flops,
               ModelSummary &summary) {
  const Graph &graph = space.graph();
  const std::vector<int> classes = classifyOps(space);
  std::map<std::string, std::map<int64_t, Module>> families;
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    if (graph.ops[i].phase != Phase::Forward)
      continue;
    if (auto place = numberedModule(graph.ops[i].module)) {
      Module &module = families[place->first][place->second];
      module.classes.push_back(classes[i]);
      module.ops.push_back(static_cast<OpId>(i));
    }
  }
  for (const auto &[prefix, modules] : families) {
    std::map<std::vector<int>, RepeatedBlock> kinds;
    std::vector<std::vector<int>> order;
    for (const auto &[index, module] : modules) {
      auto [entry, isNew] = kinds.try_emplace(module.classes);
      RepeatedBlock &block = entry->second;
      block.indices.push_back(index);
      if (!isNew)
        continue;
      order.push_back(module.classes);
      block.prefix = prefix;
      block.forwardOps = static_cast<int64_t>(module.ops.size());
      for (OpId op : module.ops) {
        block.forwardFlops += flops[op];
        for (OpId backward : space.backwardOps(op))
          block.backwardFlops += flops[backward];
      }
    }
    for (const std::vector<int> &kind : order)
      if (kinds.at(kind).indices.size() > 1)
        summary.blocks.push_back(std::move(kinds.at(kind)));
  }
}

//===- Limits of splitting ------------------------------------------------===//

/// Keys and values may be repeated for groups of queries: the head dim is then
/// a product, and its first factor counts the heads that there are.
int64_t keyValueHeads(const StrategySpace &space, ValueId key) {
  const DimStructure &heads = space.structure(key)[1];
  return heads.sections.size() == 1 && !heads.sections[0].factors.empty()
             ? heads.sections[0].factors.front()
             : heads.size;
}

void addHeads(const StrategySpace &space, const SplitRules &rules,
              ModelSummary &summary) {
  const Graph &graph = space.graph();
  for (OpId op : rules.attentionOps()) {
    const std::vector<ValueId> &operands = graph.op(op).operands;
    const int64_t query = graph.value(operands[0]).shape[1];
    const int64_t keyValue = keyValueHeads(space, operands[1]);
    auto known = std::find_if(summary.heads.begin(), summary.heads.end(),
                              [&](const AttentionHeads &heads) {
                                return heads.query == query &&
                                       heads.keyValue == keyValue;
                              });
    if (known == summary.heads.end())
      known = summary.heads.insert(known, {query, keyValue, 0});
    ++known->count;
  }
}

/// Through transposes, the parameter and the dim of it that this dim of a value
/// is; nullopt past anything else.
std::optional<std::pair<int, int>> parameterDim(const StrategySpace &space,
                                                const SplitRules &rules,
                                                ValueId value, int dim) {
  const Graph &graph = space.graph();
  const int parameter = rules.parameterOf(value);
  if (parameter < 0)
    return std::nullopt;
  while (value != graph.parameters[parameter].value) {
    const OpId producer = graph.value(value).producer;
    const OpRule *rule = space.rule(producer);
    const std::string &label = rule->results[0][dim].name;
    const std::vector<DimLabel> &operand = rule->operands[0];
    const auto found =
        std::find_if(operand.begin(), operand.end(), [&](const DimLabel &d) {
          return !d.name.empty() && d.name == label;
        });
    if (rule->isView || found == operand.end())
      return std::nullopt;
    dim = static_cast<int>(found - operand.begin());
    value = graph.op(producer).operands[0];
  }
  return std::pair(parameter, dim);
}

/// Dims of matrices that a split of some op that reads them would split.
void addSplitDims(const StrategySpace &space, const SplitRules &rules,
                  ModelSummary &summary) {
  const Graph &graph = space.graph();
  const std::vector<int> classes = classifyOps(space);
  std::set<int> seen;
  for (OpId id : rules.decidingOps()) {
    if (!seen.insert(classes[id]).second)
      continue;
    const std::vector<ValueId> &operands = graph.op(id).operands;
    for (const Choice &choice : space.choices(id)) {
      if (choice.labels.empty())
        continue;
      const Column column = space.column(id, choice);
      for (size_t k = 0; k < operands.size(); ++k) {
        if (operands[k] == None || !column.operands[k].isSplit() ||
            graph.value(operands[k]).shape.size() < 2)
          continue;
        const auto place =
            parameterDim(space, rules, operands[k], column.operands[k].dim);
        if (!place)
          continue;
        const Parameter &parameter = graph.parameters[place->first];
        SplitDim dim{withoutNumbers(parameter.names.front()), place->second,
                     graph.value(parameter.value).shape[place->second]};
        if (std::find(summary.splitDims.begin(), summary.splitDims.end(),
                      dim) == summary.splitDims.end())
          summary.splitDims.push_back(std::move(dim));
      }
    }
  }
}

void addDegrees(const StrategySpace &space, const SplitRules &rules,
                ModelSummary &summary) {
  const int64_t rows = space.graph().unitRows;
  for (int64_t tp = 2; tp <= MostTensorDegree; ++tp) {
    const auto mesh = meshOf({1, tp, 1, rows}, rows);
    if (!mesh || !rules.canSplit(*mesh))
      continue;
    const bool even = std::all_of(
        summary.heads.begin(), summary.heads.end(),
        [&](const AttentionHeads &heads) { return heads.query % tp == 0; });
    summary.tensorDegrees.push_back({tp, even});
  }
}

} // namespace

ModelSummary summarizeModel(const StrategySpace &space) {
  const Graph &graph = space.graph();
  const SplitRules rules(space);
  ModelSummary summary;
  addParameters(graph, summary);
  const std::vector<int64_t> flops = flopsOfOps(graph);
  for (size_t i = 0; i < graph.ops.size(); ++i)
    (graph.ops[i].phase == Phase::Forward ? summary.forwardFlops
                                          : summary.backwardFlops) += flops[i];
  summary.savedBytes = savedBytes(graph);
  addBlocks(space, flops, summary);
  addHeads(space, rules, summary);
  summary.wholeOps = space.opsWithoutRule();
  addSplitDims(space, rules, summary);
  addDegrees(space, rules, summary);
  summary.mostStages =
      std::max<int64_t>(1, static_cast<int64_t>(rules.decidingOps().size()));
  return summary;
}

} // namespace monarch::planner
