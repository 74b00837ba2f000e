//===- GlobRules.h - many decisions as few rules --------------------------===//
//
// A table from keys ("transformer.h.3.attn#aten::addmm#0") to values becomes
// rules whose patterns cover many keys: "*" stands for part of one segment,
// "**" for anything. The most specific matching rule wins, an exact one over
// all. expand(compress(table)) == table, for any table: what patterns do not
// get right is listed exactly.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace monarch::planner {

struct GlobRule {
  std::string pattern;
  std::string value;
  bool operator==(const GlobRule &) const = default;
};

/// Keys are distinct.
using GlobTable = std::vector<std::pair<std::string, std::string>>;

/// "*" matches no '.' and no '#'.
bool globMatches(std::string_view pattern, std::string_view key);

/// Rules by equal path with numbers made "*". A key that no rule matches has
/// the value `fallback`.
std::vector<GlobRule> compressByPath(const GlobTable &table,
                                     const std::string &fallback);
/// Rules by subtree ("transformer.h.3.**"), for values that follow the order of
/// a model's parts.
std::vector<GlobRule> compressBySubtree(const GlobTable &table,
                                        const std::string &fallback);

/// The value that the rules give a key.
std::string expandKey(const std::vector<GlobRule> &rules, std::string_view key,
                      const std::string &fallback);
/// Patterns that match none of the keys: rules about another model.
std::vector<std::string>
unmatchedPatterns(const std::vector<GlobRule> &rules,
                  const std::vector<std::string> &keys);

} // namespace monarch::planner
