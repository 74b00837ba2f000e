//===- Frontier.h - the cheapest choices of all ops on one mesh -----------===//
//
// Walks the forward ops in order. A state holds how each value that is still to
// be read lies, in which copies, and how its cotangent is wanted; states that
// agree on that differ in nothing that comes, so the cheapest of them is kept
// (and the best few hundred in all). An op's cost is that of itself and its
// backward, of the reshards of its operands, and of the cotangents that it
// gives back. Of a run of equal layers two are walked, the second standing for
// the rest.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "planner/search/Walk.h"

namespace monarch::planner {

/// How every forward op runs, and what each then costs for one unit; costs are
/// the model of the search, resolve has the last word.
struct Assignment {
  /// Per op, per axis without data axes; empty for ops that do not decide.
  std::vector<std::vector<int>> choice;
  std::vector<int64_t> forwardPicoseconds;
  std::vector<int64_t> backwardPicoseconds;
  /// Of each forward value, on the slowest rank.
  std::vector<int64_t> valueBytes;
  int64_t picoseconds = 0;
};

/// Forward ops that are no clones, in order.
std::vector<OpId> walkedOps(const StrategySpace &space);
/// What given choices cost.
Assignment evaluate(const StrategySpace &space, const SplitRules &rules,
                    const OpCosts &costs, const OpOptions &options,
                    std::vector<std::vector<int>> choice, size_t axes);

/// A run of equal layers: `count` times the ops at [begin, begin + period) of
/// the forward ops that are no clones.
struct RepeatedBlock {
  size_t begin = 0;
  size_t period = 0;
  size_t count = 0;
};
/// The longest run of at least three; nullopt if there is none.
std::optional<RepeatedBlock> findRepeatedBlock(const std::vector<int> &classes);

struct FrontierLimits {
  size_t states = 64;
  size_t combinations = 40;
  size_t assignments = 2;
};

/// Per mesh the best few assignments, cheapest first.
std::vector<Assignment>
searchFrontier(const StrategySpace &space, const SplitRules &rules,
               const std::vector<int> &classes, const OpCosts &costs,
               const OpOptions &options, const FrontierLimits &limits);

} // namespace monarch::planner
