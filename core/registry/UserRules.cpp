//===- UserRules.cpp - monarch.rules/1 ------------------------------------===//
//
// See UserRules.h. A dim of operands and results is a word, or "_" for one that
// is never split; a flop count is a product of numbers and words.
//
//===----------------------------------------------------------------------===//
#include "core/registry/UserRules.h"
#include "core/registry/Registry.h"
#include "core/support/Json.h"

#include <fmt/format.h>

#include <sstream>

namespace monarch {

namespace {

constexpr const char *Schema = "monarch.rules/1";

struct UserRule {
  std::vector<Labels> operands, results;
  std::vector<std::string> partial;
  std::vector<std::vector<int>> linear;
  /// Numbers and labels, multiplied; empty: not given.
  std::vector<std::string> flops;
};

std::map<std::string, UserRule> &userRules() {
  static std::map<std::string, UserRule> rules;
  return rules;
}

std::vector<std::string> wordsOf(const std::string &text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;)
    words.push_back(word);
  return words;
}

bool isNumber(const std::string &word) {
  return word.find_first_not_of("0123456789") == std::string::npos &&
         word.size() < 16;
}

class RuleReader {
public:
  UserRule read(const JsonValue &json) {
    json.refuseFieldsBeside(
        {"operands", "results", "partial", "linear", "flops"});
    for (const JsonValue &operand : json["operands"].elements())
      rule.operands.push_back(readLabels(operand));
    for (const JsonValue &result : json["results"].elements())
      rule.results.push_back(readLabels(result));
    if (auto partial = json.find("partial"))
      for (const JsonValue &label : partial->elements())
        rule.partial.push_back(readPartial(label));
    if (auto linear = json.find("linear"))
      for (const JsonValue &group : linear->elements())
        rule.linear.push_back(readGroup(group));
    if (auto flops = json.find("flops"))
      readFlops(*flops);
    return std::move(rule);
  }

private:
  static bool has(const std::vector<Labels> &tensors,
                  const std::string &label) {
    for (const Labels &dims : tensors)
      for (const DimLabel &dim : dims)
        if (dim.name == label)
          return true;
    return false;
  }

  static Labels readLabels(const JsonValue &json) {
    Labels dims;
    for (const std::string &word : wordsOf(json.string())) {
      for (const DimLabel &dim : dims)
        if (dim.name == word && word != "_")
          json.fail("the label '" + word + "' stands twice in one tensor");
      dims.push_back(DimLabel{word == "_" ? "" : word});
    }
    return dims;
  }

  std::string readPartial(const JsonValue &json) const {
    const std::string label = json.string();
    bool isEverywhere = true;
    for (const Labels &result : rule.results)
      isEverywhere &= has({result}, label);
    if (json.ok() && (!has(rule.operands, label) || isEverywhere))
      json.fail("partial sums come from a label that operands have and a "
                "result does not");
    return label;
  }

  std::vector<int> readGroup(const JsonValue &json) const {
    std::vector<int> group;
    for (const JsonValue &operand : json.elements())
      group.push_back(static_cast<int>(
          operand.integer(0, static_cast<int64_t>(rule.operands.size()) - 1)));
    return group;
  }

  void readFlops(const JsonValue &json) {
    rule.flops = wordsOf(json.string());
    for (const std::string &word : rule.flops)
      if (!isNumber(word) && !has(rule.operands, word) &&
          !has(rule.results, word))
        json.fail("'" + word + "' is no number and no label");
  }

  UserRule rule;
};

/// "" where the rule fits.
std::string misfit(const UserRule &rule, const OpView &op) {
  if (rule.operands.size() != op.operandCount())
    return fmt::format("has {} operands, its rule {}", op.operandCount(),
                       rule.operands.size());
  if (rule.results.size() != op.resultCount())
    return fmt::format("has {} results, its rule {}", op.resultCount(),
                       rule.results.size());
  std::map<std::string, int64_t> extents;
  auto check = [&](const Labels &dims, const Shape &shape,
                   const std::string &what) -> std::string {
    if (dims.size() != shape.size())
      return fmt::format("{} has {} dims, its rule {}", what, shape.size(),
                         dims.size());
    for (size_t dim = 0; dim < dims.size(); ++dim) {
      if (dims[dim].name.empty())
        continue;
      auto known = extents.emplace(dims[dim].name, shape[dim]).first;
      if (known->second != shape[dim])
        return fmt::format("the label '{}' is {} and {}", dims[dim].name,
                           known->second, shape[dim]);
    }
    return "";
  };
  for (size_t k = 0; k < rule.operands.size(); ++k)
    if (auto what = check(rule.operands[k], op.shape(static_cast<int>(k)),
                          fmt::format("operand {}", k));
        !what.empty())
      return what;
  for (size_t k = 0; k < rule.results.size(); ++k)
    if (auto what = check(rule.results[k], op.resultShape(static_cast<int>(k)),
                          fmt::format("result {}", k));
        !what.empty())
      return what;
  return "";
}

} // namespace

std::optional<Error> addUserRules(std::string_view text,
                                  const std::string &where) {
  const auto json = parseJson(text, where);
  if (!json)
    return json.error();
  JsonDocument document{*json, where, "MP1050"};
  document.fix = "docs/howto/custom-ops.md has the format";
  const JsonValue root(document);
  root.refuseFieldsBeside({"schema", "ops"});
  if (root["schema"].string() != Schema)
    root["schema"].fail(fmt::format("not {}", Schema));
  std::map<std::string, UserRule> rules;
  const auto known = registeredOps();
  for (const auto &[name, rule] : root["ops"].fields()) {
    if (std::binary_search(known.begin(), known.end(), name))
      rule.fail("this op has a rule of the project's own");
    rules[name] = RuleReader().read(rule);
  }
  if (document.error)
    return document.error;
  userRules() = std::move(rules);
  return std::nullopt;
}

std::optional<Error> checkUserRules(const Graph &graph) {
  std::vector<Error> errors;
  for (const Op &op : graph.ops) {
    auto found = userRules().find(op.name);
    if (found == userRules().end())
      continue;
    if (auto what = misfit(found->second, OpView(graph, op)); !what.empty())
      errors.push_back({"MP1051", ExitCode::BadInput, op.name + " " + what,
                        originText(op.module, op.source),
                        "give each operand and result its dims, in order"});
  }
  if (errors.empty())
    return std::nullopt;
  return joined(errors);
}

std::optional<OpRule> userRuleOf(const Graph &graph, const Op &op) {
  auto found = userRules().find(op.name);
  if (found == userRules().end() ||
      !misfit(found->second, OpView(graph, op)).empty())
    return std::nullopt;
  OpRule rule;
  rule.operands = found->second.operands;
  rule.results = found->second.results;
  for (const std::string &label : found->second.partial)
    makePartial(rule, label);
  for (const std::vector<int> &group : found->second.linear)
    addLinear(rule, group);
  return rule;
}

std::optional<int64_t> userFlops(const std::string &name,
                                 const std::vector<TensorType> &operands,
                                 const std::vector<TensorType> &results) {
  auto found = userRules().find(name);
  if (found == userRules().end() || found->second.flops.empty())
    return std::nullopt;
  std::map<std::string, int64_t> extents;
  auto note = [&](const std::vector<Labels> &labels,
                  const std::vector<TensorType> &tensors) {
    for (size_t k = 0; k < std::min(labels.size(), tensors.size()); ++k)
      for (size_t dim = 0;
           dim < std::min(labels[k].size(), tensors[k].shape.size()); ++dim)
        extents.emplace(labels[k][dim].name, tensors[k].shape[dim]);
  };
  note(found->second.operands, operands);
  note(found->second.results, results);
  int64_t product = 1;
  for (const std::string &word : found->second.flops)
    if (__builtin_mul_overflow(
            product, isNumber(word) ? std::stoll(word) : extents[word],
            &product))
      return std::nullopt;
  return product;
}

} // namespace monarch
