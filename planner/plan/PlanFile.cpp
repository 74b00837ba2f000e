//===- PlanFile.cpp - monarch.plan/1 as a document ------------------------===//
#include "planner/plan/PlanFile.h"

#include "core/support/Sha256.h"

#include <fmt/format.h>

namespace monarch::planner {

namespace {

Error planError(std::string what, std::string where = "plan file",
                std::string fix = "") {
  return Error{"MP2210", ExitCode::BadInput, std::move(what), std::move(where),
               std::move(fix)};
}

std::string inputDigest(const PlanFile &plan, const char *input) {
  const Json &inputs = plan.document["inputs"];
  if (inputs.is_object() && inputs.contains(input) &&
      inputs[input].is_object() && inputs[input].contains("digest") &&
      inputs[input]["digest"].is_string())
    return inputs[input]["digest"].get<std::string>();
  return "";
}

} // namespace

std::string_view toString(Origin origin) {
  switch (origin) {
  case Origin::User:
    return "user";
  case Origin::Planner:
    return "planner";
  case Origin::Default:
    return "default";
  }
  return "";
}

Expected<PlanFile> readPlan(std::string_view text) {
  Expected<Json> document = parseJson(text, "plan file");
  if (!document)
    return document.error();
  if (!document->is_object() || !document->contains("schema") ||
      !(*document)["schema"].is_string())
    return planError("not a plan: \"schema\" is missing");
  std::string schema = (*document)["schema"].get<std::string>();
  if (schema != "monarch.plan/1")
    return planError(
        fmt::format("the schema is \"{}\", not \"monarch.plan/1\"", schema),
        "plan file", "plan again with this version");
  const bool isOwn = targetOf(PlanFile{*document}) == OwnTarget;
  for (const char *section : {"inputs", isOwn ? "decisions" : "layout"})
    if (!document->contains(section) || !(*document)[section].is_object())
      return planError(fmt::format("section \"{}\" is missing", section));
  PlanFile plan{std::move(*document)};
  if (isOwn && unitRowsOf(plan) < 1)
    return planError("\"unit_rows\" is missing, or no number of rows",
                     "/decisions/unit_rows");
  if (inputDigest(plan, "graph").empty())
    return planError("the model's digest is missing", "/inputs/graph/digest");
  return plan;
}

std::string writePlan(const PlanFile &plan) { return writeJson(plan.document); }

std::string planDigest(const PlanFile &plan) {
  Json identity;
  identity["inputs"] = plan.document["inputs"];
  for (const char *section : {"decisions", "target", "layout"})
    if (plan.document.contains(section) &&
        (section != std::string_view("target") || targetOf(plan) != OwnTarget))
      identity[section] = plan.document[section];
  return sha256(writeJson(identity));
}

std::string targetOf(const PlanFile &plan) {
  const Json &document = plan.document;
  return document.contains("target") && document["target"].is_string()
             ? document["target"].get<std::string>()
             : std::string(OwnTarget);
}

int64_t unitRowsOf(const PlanFile &plan) {
  const Json &decisions = plan.document["decisions"];
  bool known = decisions.contains("unit_rows") &&
               decisions["unit_rows"].is_number_integer();
  return known ? decisions["unit_rows"].get<int64_t>() : 0;
}

std::optional<Error> checkInputs(const PlanFile &plan,
                                 const std::string &graphDigest,
                                 const std::string &clusterDigest) {
  std::string graph = inputDigest(plan, "graph");
  if (!graphDigest.empty() && graph != graphDigest)
    return Error{"MP2211", ExitCode::Stale,
                 fmt::format("the plan was made for another model: digest "
                             "{:.12} there, {:.12} here",
                             graph, graphDigest),
                 "/inputs/graph/digest", "plan again for this model"};
  std::string cluster = inputDigest(plan, "cluster");
  if (!clusterDigest.empty() && cluster != clusterDigest)
    return Error{"MP2212", ExitCode::Stale,
                 fmt::format("the plan was made for another cluster: digest "
                             "{:.12} there, {:.12} here",
                             cluster, clusterDigest),
                 "/inputs/cluster/digest", "plan again for this cluster"};
  return std::nullopt;
}

Json layoutToJson(const Layout &layout) {
  Json states = Json::array();
  for (const AxisState &state : layout.states) {
    if (!state.isSplit()) {
      states.push_back(state.isPartial() ? "P" : "R");
      continue;
    }
    std::string factors;
    for (int factor : state.factors)
      factors += fmt::format("{}{}", factors.empty() ? "" : ",", factor);
    states.push_back(fmt::format("S({}:{})", state.dim, factors));
  }
  Layout plain = layout;
  for (size_t i = 0; i < plain.order.size(); ++i)
    plain.order[i] = static_cast<int>(i);
  if (plain == layout)
    return states;
  return Json{{"states", states}, {"order", layout.order}};
}

namespace {

std::optional<int> readInt(std::string_view &text) {
  bool negative = text.starts_with('-');
  size_t digits = negative ? 1 : 0, end = digits;
  int value = 0;
  while (end < text.size() && end < digits + 6 && text[end] >= '0' &&
         text[end] <= '9')
    value = value * 10 + (text[end++] - '0');
  if (end == digits)
    return std::nullopt;
  text.remove_prefix(end);
  return negative ? -value : value;
}

std::optional<AxisState> readState(std::string_view text) {
  if (text == "R")
    return AxisState::replicated();
  if (text == "P")
    return AxisState::partial();
  if (!text.starts_with("S(") || !text.ends_with(")"))
    return std::nullopt;
  text = text.substr(2, text.size() - 3);
  std::optional<int> dim = readInt(text);
  if (!dim || !text.starts_with(':'))
    return std::nullopt;
  std::vector<int> factors;
  do {
    text.remove_prefix(1);
    std::optional<int> factor = readInt(text);
    if (!factor)
      return std::nullopt;
    factors.push_back(*factor);
  } while (text.starts_with(','));
  if (!text.empty())
    return std::nullopt;
  return AxisState::split(*dim, std::move(factors));
}

} // namespace

std::optional<Layout> layoutFromJson(const JsonValue &json) {
  Layout layout;
  JsonValue states = json.isObject() ? json["states"] : json;
  for (const std::string &text : states.strings()) {
    std::optional<AxisState> state = readState(text);
    if (!state) {
      json.fail("\"" + text +
                "\" is not the state of an axis: R, P or "
                "S(dim:factor,...)");
      return std::nullopt;
    }
    layout.states.push_back(std::move(*state));
  }
  std::vector<bool> seen(layout.states.size(), false);
  if (json.isObject()) {
    for (int64_t axis : json["order"].integers()) {
      bool valid =
          axis >= 0 && axis < static_cast<int64_t>(seen.size()) && !seen[axis];
      if (!valid) {
        json.fail("the order is not a permutation of the axes");
        return std::nullopt;
      }
      seen[axis] = true;
      layout.order.push_back(static_cast<int>(axis));
    }
  } else {
    for (size_t i = 0; i < layout.states.size(); ++i)
      layout.order.push_back(static_cast<int>(i));
  }
  if (!json.ok() || layout.order.size() != layout.states.size()) {
    json.fail("the order is not a permutation of the axes");
    return std::nullopt;
  }
  return canonical(std::move(layout));
}

} // namespace monarch::planner
