//===- UserRules.h - rules of ops that the project does not know ----------===//
//
// A file (monarch.rules/1) gives custom ops what Rule.h gives the others:
// labels of dims as in an einsum, which splits leave partial sums, which
// operands pass them on, and the arithmetic. Read once, before any graph; the
// project's own rules cannot be replaced.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/registry/Rule.h"

#include <string_view>

namespace monarch {

/// Adds the rules of a document to those that `ruleOf` and `callCost` know, for
/// this process. `where` names it in errors.
std::optional<Error> addUserRules(std::string_view text,
                                  const std::string &where);

/// Ops of the graph whose rule does not fit them, all at once.
std::optional<Error> checkUserRules(const Graph &graph);

/// The rule of the file for this op; nullopt without, or when it does not fit.
std::optional<OpRule> userRuleOf(const Graph &graph, const Op &op);
/// Of the file; nullopt where it says none.
std::optional<int64_t> userFlops(const std::string &name,
                                 const std::vector<TensorType> &operands,
                                 const std::vector<TensorType> &results);

} // namespace monarch
