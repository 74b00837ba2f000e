//===- OpClasses.h - which ops are alike ----------------------------------===//
//
// Two forward ops are of one class when they and their backward ops do the same
// to values of the same shapes and structures, wired alike: the layers of a
// model differ in their values only. What is found for one holds for all.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/strategy/Strategies.h"

namespace monarch::planner {

/// Per op the number of its class; -1 for backward ops of a forward op.
std::vector<int> classifyOps(const StrategySpace &space);

} // namespace monarch::planner
