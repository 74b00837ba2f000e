//===- Advice.h - what an estimate's figures mean for its reader ----------===//
//
// What is kept free and why, which category rules when memory does, what helps
// against it and how far, and when logits or full sharding over a slow network
// cost more than they need to.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "planner/step/Estimate.h"

namespace monarch::planner {

/// One remark a line, the most important first.
std::vector<std::string> advice(const Estimate &estimate, const ModelWork &work,
                                const Machine &machine, const Target &target);

} // namespace monarch::planner
