//===- DiffPlans.cpp - what two plans decide and cost, side by side -------===//
#include "planner/DiffPlans.h"

#include "planner/cluster/Units.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>

namespace monarch::planner {

namespace {

/// Names and values, in the order of the file.
using Fields = std::vector<std::pair<std::string, Json>>;

/// Of figures that are in one file alone: what they would have said there.
enum class Missing : uint8_t { IsNull, IsZero, IsLeftOut };

Json sectionOf(const PlanFile &plan, const char *name) {
  return plan.document.value(name, Json::object());
}

/// Objects as dotted names; arrays and texts as they are.
void flatten(const Json &json, const std::string &prefix, Fields &fields) {
  if (!json.is_object()) {
    fields.emplace_back(prefix, json);
    return;
  }
  for (const auto &[name, value] : json.items())
    flatten(value, prefix.empty() ? name : prefix + "." + name, fields);
}

/// "stage_of blocks.1.**" is "1": one field for each rule.
void addRules(const Json &rules, const std::string &section, Fields &fields) {
  for (const Json &rule : rules) {
    if (!rule.is_object() || !rule.contains("match")) {
      fields.emplace_back(section, rule);
      continue;
    }
    Json value = rule;
    value.erase("match");
    const Json &match = rule["match"];
    fields.emplace_back(
        section + " " +
            (match.is_string() ? match.get<std::string>() : match.dump()),
        value.size() == 1 ? Json(value.front()) : value);
  }
}

Json meshText(const Json &mesh) {
  std::vector<std::string> words;
  for (const Json &axis : mesh)
    if (axis.is_object() && axis.contains("name") && axis["name"].is_string() &&
        axis.contains("size"))
      words.push_back(axis["name"].get<std::string>() + "=" +
                      axis["size"].dump());
  return words.size() == mesh.size()
             ? Json(fmt::format("{}", fmt::join(words, " ")))
             : mesh;
}

Fields decisionsOf(const PlanFile &plan, bool isComparable) {
  Fields fields = {{"target", targetOf(plan)}};
  const bool isOwn = targetOf(plan) == OwnTarget;
  if (isOwn || !isComparable)
    flatten(sectionOf(plan, "degrees"), "", fields);
  if (!isComparable)
    return fields;
  if (!isOwn) {
    flatten(sectionOf(plan, "layout"), "", fields);
    return fields;
  }
  const Json decisions = sectionOf(plan, "decisions");
  for (const auto &[name, value] : decisions.items())
    if (name == "mesh")
      fields.emplace_back(name, meshText(value));
    else if (value.is_array() &&
             (name == "stage_of" || name == "choices" || name == "layouts"))
      addRules(value, name, fields);
    else
      flatten(value, name, fields);
  return fields;
}

/// Numbers of the prediction; of stages only where there are as many.
Fields figuresOf(const PlanFile &plan, bool hasSameStages) {
  // Of the machine, or no quantity.
  static const std::set<std::string> Others = {"devices", "memory_bytes.usable",
                                               "memory_bytes.stage"};
  Json prediction = sectionOf(plan, "prediction");
  if (!prediction.is_object())
    return {};
  Fields all, figures;
  if (prediction.contains("stages") && prediction["stages"].is_array()) {
    const Json stages = prediction["stages"];
    prediction.erase("stages");
    flatten(prediction, "", all);
    for (size_t index = 0; hasSameStages && index < stages.size(); ++index)
      flatten(stages[index], fmt::format("stage {}", index), all);
  } else {
    flatten(prediction, "", all);
  }
  for (auto &[name, value] : all)
    if ((value.is_number() && !Others.contains(name)) || name == "fits")
      figures.emplace_back(name, std::move(value));
  return figures;
}

size_t stageCount(const PlanFile &plan) {
  const Json prediction = sectionOf(plan, "prediction");
  return prediction.is_object() && prediction.contains("stages")
             ? prediction["stages"].size()
             : 0;
}

/// In the order of the first, then those of the second alone.
std::vector<PlanChange> changes(const Fields &before, const Fields &after,
                                Missing missing) {
  const Json absent = missing == Missing::IsZero ? Json(0) : Json();
  auto valueIn = [&](const Fields &fields, const std::string &name) {
    const auto found =
        std::find_if(fields.begin(), fields.end(),
                     [&](const auto &field) { return field.first == name; });
    return found == fields.end() ? absent : found->second;
  };
  std::vector<PlanChange> list;
  std::set<std::string> seen;
  for (const Fields *fields : {&before, &after})
    for (const auto &field : *fields) {
      if (!seen.insert(field.first).second)
        continue;
      PlanChange change{field.first, valueIn(before, field.first),
                        valueIn(after, field.first), std::nullopt};
      const bool isLeftOut =
          missing == Missing::IsLeftOut &&
          (change.before.is_null() || change.after.is_null());
      if (change.before != change.after && !isLeftOut)
        list.push_back(std::move(change));
    }
  return list;
}

/// Bytes, where the name says so, as a person reads them.
std::string words(const std::string &name, const Json &value) {
  constexpr size_t Long = 48, Shown = 12;
  if (value.is_null() || value == "")
    return "(none)";
  if (value.is_number() && name.find("bytes") != std::string::npos)
    return formatBytes(static_cast<int64_t>(value.get<double>()));
  if (value.is_string()) {
    const auto text = value.get<std::string>();
    return text.size() > Long ? text.substr(0, Shown) + "..." : text;
  }
  if (value.is_array() && value.empty())
    return "(none)";
  if (value.is_array() &&
      std::all_of(value.begin(), value.end(),
                  [](const Json &entry) { return entry.is_number(); })) {
    std::vector<std::string> numbers;
    for (const Json &entry : value)
      numbers.push_back(entry.dump());
    return fmt::format("{}", fmt::join(numbers, ":"));
  }
  return value.is_number_float() ? fmt::format("{:.6g}", value.get<double>())
                                 : value.dump();
}

std::string percent(double share) {
  return fmt::format("{:.3g} %", 100 * share);
}

/// In text; the document has them all.
constexpr size_t MostShown = 24;

std::string lines(const char *title, const std::vector<PlanChange> &list) {
  if (list.empty())
    return "";
  size_t width = 0;
  const size_t count = std::min(list.size(), MostShown);
  for (size_t index = 0; index < count; ++index)
    width = std::max(width, list[index].name.size());
  std::string text = fmt::format("{}\n", title);
  for (size_t index = 0; index < count; ++index) {
    const PlanChange &change = list[index];
    text += fmt::format("  {:<{}}  {} -> {}", change.name, width,
                        words(change.name, change.before),
                        words(change.name, change.after));
    if (change.share)
      text += fmt::format("  ({:+.3g} %)", 100 * *change.share);
    text += "\n";
  }
  if (count < list.size())
    text += fmt::format("  and {} more: --format json lists them\n",
                        list.size() - count);
  return text;
}

Json changesJson(const std::vector<PlanChange> &list) {
  Json json = Json::array();
  for (const PlanChange &change : list) {
    json.push_back({{"name", change.name},
                    {"before", change.before},
                    {"after", change.after}});
    if (change.share)
      json.back()["change"] = rounded(*change.share);
  }
  return json;
}

} // namespace

std::string PlanDifference::cause() const {
  if (isSame())
    return "";
  if (inputs.empty())
    return "the inputs are the same: another version of the planner, or a file "
           "that was edited";
  std::vector<std::string> names;
  for (const PlanChange &change : inputs) {
    std::string name = change.name.substr(0, change.name.find('.'));
    if (names.empty() || names.back() != name)
      names.push_back(std::move(name));
  }
  return fmt::format("other inputs: {}", fmt::join(names, ", "));
}

PlanDifference diffPlans(const PlanFile &before, const PlanFile &after,
                         double tolerance) {
  const bool isComparable =
      (targetOf(before) == OwnTarget) == (targetOf(after) == OwnTarget);
  PlanDifference difference;
  difference.decisions =
      changes(decisionsOf(before, isComparable),
              decisionsOf(after, isComparable), Missing::IsNull);
  const bool hasSameStages = stageCount(before) == stageCount(after);
  for (PlanChange &change : changes(
           figuresOf(before, hasSameStages), figuresOf(after, hasSameStages),
           isComparable ? Missing::IsZero : Missing::IsLeftOut)) {
    if (change.before.is_number() && change.after.is_number() &&
        change.before != 0)
      change.share =
          change.after.get<double>() / change.before.get<double>() - 1;
    if (change.share && std::abs(*change.share) <= tolerance)
      ++difference.within;
    else
      difference.figures.push_back(std::move(change));
  }
  Fields inputs[2];
  flatten(sectionOf(before, "inputs"), "", inputs[0]);
  flatten(sectionOf(after, "inputs"), "", inputs[1]);
  difference.inputs = changes(inputs[0], inputs[1], Missing::IsNull);
  return difference;
}

Json toJson(const PlanDifference &difference, double tolerance) {
  return {{"same", difference.isSame()},
          {"tolerance", rounded(tolerance)},
          {"decisions", changesJson(difference.decisions)},
          {"figures", changesJson(difference.figures)},
          {"figures_within_tolerance", difference.within},
          {"inputs", changesJson(difference.inputs)},
          {"cause", difference.cause()}};
}

std::string summarize(const PlanDifference &difference, double tolerance) {
  const std::string within =
      difference.within == 0
          ? std::string()
          : fmt::format("figures that moved by {} at most: {}\n",
                        percent(tolerance), difference.within);
  if (difference.isSame())
    return "the same plan\n" + within;
  return lines("decisions", difference.decisions) +
         lines("figures", difference.figures) + within +
         lines("inputs", difference.inputs) +
         fmt::format("cause: {}\n", difference.cause());
}

} // namespace monarch::planner
