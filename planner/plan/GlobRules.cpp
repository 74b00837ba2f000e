//===- GlobRules.cpp - many decisions as few rules ------------------------===//
#include "planner/plan/GlobRules.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace monarch::planner {

bool globMatches(std::string_view pattern, std::string_view key) {
  // reached[i]: the pattern so far matches the first i characters. Linear in
  // both lengths for each pattern: files may come from anywhere.
  std::vector<char> reached(key.size() + 1, 0);
  reached[0] = 1;
  for (size_t at = 0; at < pattern.size(); ++at) {
    if (pattern[at] == '*') {
      bool anything = pattern.substr(at, 2) == "**";
      at += anything ? 1 : 0;
      for (size_t i = 0; i < key.size(); ++i)
        if (reached[i] && (anything || (key[i] != '.' && key[i] != '#')))
          reached[i + 1] = 1;
      continue;
    }
    for (size_t i = key.size(); i > 0; --i)
      reached[i] = reached[i - 1] && key[i - 1] == pattern[at];
    reached[0] = 0;
  }
  return reached[key.size()];
}

namespace {

/// More literal characters first, then fewer stars, then by name.
auto specificity(const std::string &pattern) {
  auto stars = std::count(pattern.begin(), pattern.end(), '*');
  auto literals = static_cast<std::ptrdiff_t>(pattern.size()) - stars;
  return std::make_tuple(-literals, stars, std::string_view(pattern));
}

bool isNumber(std::string_view segment) {
  return !segment.empty() &&
         segment.find_first_not_of("0123456789") == std::string_view::npos;
}

/// Numbers of the module path made "*"; what follows '#' is left alone.
std::string generalised(std::string_view key) {
  std::string result;
  size_t begin = 0;
  while (true) {
    size_t end = key.find_first_of(".#", begin);
    std::string_view segment = key.substr(begin, end - begin);
    result += isNumber(segment) ? "*" : std::string(segment);
    if (end == std::string_view::npos)
      return result;
    if (key[end] == '#')
      return result + std::string(key.substr(end));
    result += '.';
    begin = end + 1;
  }
}

const std::string &majority(const std::vector<const std::string *> &values) {
  std::map<std::string_view, std::pair<int, const std::string *>> counts;
  for (const std::string *value : values) {
    auto &[count, text] = counts[*value];
    ++count;
    text = value;
  }
  const std::pair<int, const std::string *> *best = nullptr;
  for (const auto &[text, entry] : counts)
    if (!best || entry.first > best->first)
      best = &entry;
  return *best->second;
}

/// Adds an exact rule for each key that the rules get wrong, then sorts.
std::vector<GlobRule> completed(std::vector<GlobRule> rules,
                                const GlobTable &table,
                                const std::string &fallback) {
  std::vector<GlobRule> exact;
  for (const auto &[key, value] : table)
    if (expandKey(rules, key, fallback) != value)
      exact.push_back({key, value});
  rules.insert(rules.end(), exact.begin(), exact.end());
  std::sort(rules.begin(), rules.end(),
            [](const GlobRule &a, const GlobRule &b) {
              return a.pattern < b.pattern;
            });
  return rules;
}

struct Subtree {
  std::map<std::string, Subtree> children;
  std::vector<const std::string *> values; // of this node and all below
};

void writeSubtree(const Subtree &node, const std::string &path,
                  const std::string &inherited, std::vector<GlobRule> &rules) {
  const std::string &common = majority(node.values);
  if (common != inherited)
    rules.push_back({path + "**", common});
  if (std::all_of(node.values.begin(), node.values.end(),
                  [&](const std::string *value) { return *value == common; }))
    return;
  for (const auto &[segment, child] : node.children)
    writeSubtree(child, path + segment, common, rules);
}

} // namespace

std::vector<GlobRule> compressByPath(const GlobTable &table,
                                     const std::string &fallback) {
  std::map<std::string, std::vector<const std::string *>> groups;
  for (const auto &[key, value] : table)
    groups[generalised(key)].push_back(&value);
  std::vector<GlobRule> rules;
  for (const auto &[pattern, values] : groups)
    if (const std::string &value = majority(values); value != fallback)
      rules.push_back({pattern, value});
  return completed(std::move(rules), table, fallback);
}

std::vector<GlobRule> compressBySubtree(const GlobTable &table,
                                        const std::string &fallback) {
  if (table.empty())
    return {};
  Subtree root;
  for (const auto &[key, value] : table) {
    Subtree *node = &root;
    node->values.push_back(&value);
    // "a.b#op" has the nodes "a.", "a.b#" and so on: a node's path ends with
    // its separator, so that "h.1**" is never confused with "h.10".
    for (size_t begin = 0; begin < key.size();) {
      size_t end = key.find_first_of(".#", begin);
      end = end == std::string::npos ? key.size() : end + 1;
      node = &node->children[key.substr(begin, end - begin)];
      node->values.push_back(&value);
      begin = end;
    }
  }
  std::vector<GlobRule> rules;
  writeSubtree(root, "", fallback, rules);
  return completed(std::move(rules), table, fallback);
}

std::string expandKey(const std::vector<GlobRule> &rules, std::string_view key,
                      const std::string &fallback) {
  const GlobRule *best = nullptr;
  for (const GlobRule &rule : rules) {
    if (rule.pattern == key)
      return rule.value;
    if (globMatches(rule.pattern, key) &&
        (!best || specificity(rule.pattern) < specificity(best->pattern)))
      best = &rule;
  }
  return best ? best->value : fallback;
}

std::vector<std::string>
unmatchedPatterns(const std::vector<GlobRule> &rules,
                  const std::vector<std::string> &keys) {
  std::vector<std::string> unmatched;
  for (const GlobRule &rule : rules)
    if (std::none_of(keys.begin(), keys.end(), [&](const std::string &key) {
          return rule.pattern == key || globMatches(rule.pattern, key);
        }))
      unmatched.push_back(rule.pattern);
  return unmatched;
}

} // namespace monarch::planner
