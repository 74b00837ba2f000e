//===- PlanDecisions.cpp - decisions as rules by module path --------------===//
//
// An op is known by its module, its name, and how many ops of that name stand
// before it in the module. Per op one text holds its choice on each axis; ops
// that follow or run whole everywhere need no rule.
//
//===----------------------------------------------------------------------===//
#include "planner/plan/GlobRules.h"
#include "planner/plan/PlanFile.h"

#include <fmt/format.h>

namespace monarch::planner {

namespace {

bool isSum(const Op &op) {
  return op.phase == Phase::Backward && op.forward == None;
}

/// "transformer.h.3.attn#aten::addmm#0"; empty for backward ops.
std::vector<std::string> opKeys(const Graph &graph) {
  std::vector<std::string> keys(graph.ops.size());
  std::map<std::string, int> ordinals;
  for (size_t id = 0; id < graph.ops.size(); ++id) {
    const Op &op = graph.ops[id];
    if (op.phase == Phase::Backward && !isSum(op))
      continue;
    std::string stem = op.module + (isSum(op) ? "#sum:" : "#") + op.name + "#";
    keys[id] = stem + std::to_string(ordinals[stem]++);
  }
  return keys;
}

/// "whole h" for choices of two axes; a pass adds "+cotangent" to an axis,
/// operands fetched again add " refetch" at the end.
std::string choiceText(const Decisions &decisions, const StrategySpace &space,
                       OpId id) {
  std::string text;
  const std::vector<bool> &passes = decisions.passPartialCotangent[id];
  for (size_t axis = 0; axis < decisions.mesh.axes.size(); ++axis) {
    int choice = decisions.choice[id][axis];
    text += axis == 0 ? "" : " ";
    text += choice == Follow ? "follow" : space.choices(id)[choice].name;
    if (axis < passes.size() && passes[axis])
      text += "+cotangent";
  }
  if (!decisions.keepGathered[id])
    text += text.empty() ? "refetch" : " refetch";
  return text;
}

std::string repeated(std::string_view word, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i)
    text += fmt::format("{}{}", i == 0 ? "" : " ", word);
  return text;
}

/// What an op does that no rule names: followers follow and pass partial
/// cotangents on, sums follow, others run whole.
std::string defaultText(const StrategySpace &space, OpId id, size_t axes) {
  if (isSum(space.graph().op(id)))
    return repeated("follow", axes);
  const OpRule *rule = space.rule(id);
  return repeated(rule && rule->follows ? "follow+cotangent" : "whole", axes);
}

bool applyChoiceText(std::string_view text, const StrategySpace &space, OpId id,
                     Decisions &decisions) {
  size_t axes = decisions.mesh.axes.size();
  std::vector<std::string_view> words;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find(' ', begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  if (words.size() == axes + 1 && words.back() == "refetch") {
    decisions.keepGathered[id] = false;
    words.pop_back();
  }
  if (words.size() != axes)
    return false;
  for (size_t axis = 0; axis < axes; ++axis) {
    std::string_view word = words[axis];
    constexpr std::string_view Pass = "+cotangent";
    if (word.ends_with(Pass)) {
      word.remove_suffix(Pass.size());
      decisions.passPartialCotangent[id][axis] = true;
    }
    int choice = word == "follow" ? Follow : space.findChoice(id, word);
    if (choice < 0 && word != "follow")
      return false;
    decisions.choice[id][axis] = choice;
  }
  return true;
}

Json rulesToJson(const std::vector<GlobRule> &rules, const char *value) {
  Json list = Json::array();
  for (const GlobRule &rule : rules)
    list.push_back({{"match", rule.pattern}, {value, rule.value}});
  return list;
}

std::vector<GlobRule> rulesFromJson(const JsonValue &list, const char *value) {
  std::vector<GlobRule> rules;
  for (const JsonValue &rule : list.elements())
    rules.push_back({rule["match"].string(), rule[value].string()});
  return rules;
}

constexpr std::string_view DefaultMark = "default";

/// Tables of what a plan says of ops: only those that it says something about.
struct OpTables {
  GlobTable stages;
  GlobTable choices;
};

OpTables opTables(const Decisions &decisions, const StrategySpace &space,
                  const std::vector<std::string> &keys) {
  OpTables tables;
  size_t axes = decisions.mesh.axes.size();
  for (size_t id = 0; id < keys.size(); ++id) {
    if (keys[id].empty())
      continue;
    OpId op = static_cast<OpId>(id);
    if (!isSum(space.graph().op(op)) && !space.isCloned(op))
      tables.stages.emplace_back(keys[id], std::to_string(decisions.stage[id]));
    std::string text = choiceText(decisions, space, op);
    if (text == defaultText(space, op, axes))
      text = DefaultMark;
    tables.choices.emplace_back(keys[id], std::move(text));
  }
  return tables;
}

class Expander {
public:
  Expander(const PlanFile &plan, const StrategySpace &space)
      : space(space),
        graph(space.graph()), file{plan.document,      "plan file", "MP2210",
                                   ExitCode::BadInput, "",          {}} {}

  Expected<Decisions> run() {
    JsonValue root = JsonValue(file)["decisions"];
    readSettings(root);
    if (!file.error)
      readOps(root);
    if (!file.error)
      readLayouts(root);
    if (file.error)
      return *file.error;
    return normalised(std::move(decisions), space);
  }

private:
  void readSettings(const JsonValue &root) {
    for (const JsonValue &axis : root["mesh"].elements()) {
      std::string role = axis["role"].string();
      if (role != "data" && role != "tensor")
        axis["role"].fail("must be \"data\" or \"tensor\"");
      decisions.mesh.axes.push_back(
          {axis["name"].string(), axis["size"].integer(2, 1 << 20),
           role == "data" ? AxisRole::Data : AxisRole::Tensor});
    }
    decisions.stages = static_cast<int>(root["stages"].integer(1, 1 << 20));
    decisions.unitRows = root["unit_rows"].integer(1, int64_t(1) << 40);
    decisions.globalRows = root["global_rows"].integer(1, int64_t(1) << 40);
    std::string optimizer = root["optimizer"].string();
    std::string schedule = root["schedule"].string();
    bool known = false;
    for (OptimizerKind kind : {OptimizerKind::SGD, OptimizerKind::AdamW})
      if (optimizer == toString(kind)) {
        decisions.optimizer = kind;
        known = true;
      }
    if (!known)
      root["optimizer"].fail("\"" + optimizer + "\" is not known");
    if (std::optional<JsonValue> masters = root.find("master_weights")) {
      decisions.masterWeights = masters->string() == toString(DType::Float32);
      if (!decisions.masterWeights)
        masters->fail("must be \"float32\", or left out");
    }
    if (schedule == toString(ScheduleKind::GPipe))
      decisions.schedule = ScheduleKind::GPipe;
    else if (schedule != toString(ScheduleKind::OneFOneB))
      root["schedule"].fail("\"" + schedule + "\" is not known");
    if (std::optional<JsonValue> tables = root.find("tables"))
      for (const JsonValue &table : tables->elements())
        decisions.tables.set(table["extent"].integer(0, int64_t(1) << 40),
                             table["parts"].integer(2, 1 << 20),
                             table["offsets"].integers());
  }

  void readOps(const JsonValue &root) {
    size_t count = graph.ops.size(), axes = decisions.mesh.axes.size();
    decisions.stage.assign(count, 0);
    decisions.choice.assign(count, std::vector<int>(axes, Follow));
    decisions.passPartialCotangent.assign(count,
                                          std::vector<bool>(axes, false));
    decisions.keepGathered.assign(count, true);
    std::vector<GlobRule> stages = rulesFromJson(root["stage_of"], "stage");
    std::vector<GlobRule> choices = rulesFromJson(root["choices"], "choice");
    std::vector<std::string> keys = opKeys(graph);
    for (size_t i = 0; i < keys.size() && !file.error; ++i) {
      if (keys[i].empty())
        continue;
      OpId id = static_cast<OpId>(i);
      std::string stage = expandKey(stages, keys[i], "0");
      if (stage.empty() || stage.size() > 6 ||
          stage.find_first_not_of("0123456789") != std::string::npos)
        root["stage_of"].fail("\"" + stage + "\" is not a stage");
      else
        decisions.stage[i] = std::stoi(stage);
      std::string text = expandKey(choices, keys[i], std::string(DefaultMark));
      if (text == DefaultMark)
        text = defaultText(space, id, axes);
      if (!applyChoiceText(text, space, id, decisions))
        root["choices"].fail("\"" + text + "\" is not a choice of " + keys[i]);
    }
    for (const auto &[name, rules] :
         {std::pair("stage_of", &stages), std::pair("choices", &choices)})
      for (const std::string &pattern : unmatchedPatterns(*rules, keys))
        root[name].fail("\"" + pattern + "\" matches no op of the model");
  }

  void readLayouts(const JsonValue &root) {
    std::vector<std::pair<std::string, Layout>> layouts;
    std::vector<GlobRule> rules;
    for (const JsonValue &rule : root["layouts"].elements()) {
      std::optional<Layout> layout = layoutFromJson(rule["layout"]);
      if (layout && layout->states.size() != decisions.mesh.axes.size())
        rule["layout"].fail("must have a state for each mesh axis");
      rules.push_back({rule["match"].string(), std::to_string(layouts.size())});
      layouts.emplace_back("", layout.value_or(Layout{}));
    }
    if (file.error)
      return;
    for (const Parameter &parameter : graph.parameters) {
      std::string index = expandKey(rules, parameter.names[0], "");
      decisions.parameterLayout.push_back(
          index.empty() ? Layout::replicated(decisions.mesh.axes.size())
                        : layouts[std::stoul(index)].second);
    }
  }

  const StrategySpace &space;
  const Graph &graph;
  JsonDocument file;
  Decisions decisions;
};

} // namespace

Decisions normalised(Decisions decisions, const StrategySpace &space) {
  const Graph &graph = space.graph();
  size_t axes = decisions.mesh.axes.size();
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const Op &op = graph.ops[i];
    OpId id = static_cast<OpId>(i);
    if (op.phase == Phase::Forward && !space.isCloned(id))
      continue;
    decisions.stage[i] = 0;
    if (op.phase == Phase::Forward)
      continue;
    decisions.passPartialCotangent[i].assign(axes, false);
    decisions.keepGathered[i] = true;
    if (!isSum(op))
      decisions.choice[i].assign(axes, Follow);
  }
  return decisions;
}

Json compressDecisions(const Decisions &decisions, const StrategySpace &space) {
  const Graph &graph = space.graph();
  std::vector<std::string> keys = opKeys(graph);
  OpTables tables = opTables(decisions, space, keys);

  Json json;
  json["mesh"] = Json::array();
  for (const MeshAxis &axis : decisions.mesh.axes)
    json["mesh"].push_back(
        {{"name", axis.name},
         {"size", axis.size},
         {"role", axis.role == AxisRole::Data ? "data" : "tensor"}});
  json["stages"] = decisions.stages;
  json["schedule"] = toString(decisions.schedule);
  json["unit_rows"] = decisions.unitRows;
  json["global_rows"] = decisions.globalRows;
  json["optimizer"] = toString(decisions.optimizer);
  if (decisions.masterWeights)
    json["master_weights"] = toString(DType::Float32);
  if (!decisions.tables.exceptions().empty()) {
    json["tables"] = Json::array();
    for (const auto &[key, offsets] : decisions.tables.exceptions())
      json["tables"].push_back(
          {{"extent", key.first}, {"parts", key.second}, {"offsets", offsets}});
  }
  json["stage_of"] =
      rulesToJson(compressBySubtree(tables.stages, "0"), "stage");
  json["choices"] = rulesToJson(
      compressByPath(tables.choices, std::string(DefaultMark)), "choice");

  GlobTable layouts;
  std::string replicated =
      layoutToJson(Layout::replicated(decisions.mesh.axes.size())).dump();
  for (size_t i = 0; i < graph.parameters.size(); ++i)
    layouts.emplace_back(graph.parameters[i].names[0],
                         layoutToJson(decisions.parameterLayout[i]).dump());
  json["layouts"] = Json::array();
  for (const GlobRule &rule : compressByPath(layouts, replicated))
    json["layouts"].push_back(
        {{"match", rule.pattern}, {"layout", Json::parse(rule.value)}});
  return json;
}

Expected<Decisions> expandDecisions(const PlanFile &plan,
                                    const StrategySpace &space) {
  return Expander(plan, space).run();
}

} // namespace monarch::planner
