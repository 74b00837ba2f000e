//===- Compare.h - one layout against another -----------------------------===//
#pragma once

#include "planner/choose/ChooseLayout.h"

namespace monarch::planner {

/// "tp 4, pp 2, dp 8, zero 1, full recompute": what is not 1, none or off.
std::string shortName(const StepLayout &layout);
Json layoutJson(const StepLayout &layout);
/// Parts of a step by name, in seconds.
std::vector<std::pair<std::string, double>> partsOf(const StepTime &time);
/// "+0.31 s (12 %): pipeline bubble +0.25 s, ..." or by how much it does not
/// fit.
std::string whyLost(const Estimate &other, const Estimate &best);

} // namespace monarch::planner
