//===- PinConflict.h - pins that no plan which fits can have --------------===//
#pragma once

#include "planner/Planner.h"

namespace monarch::planner {

/// A search of the same question with other pins.
using PlanSearch = std::function<Expected<PlanResult>(const PlanRequest &)>;

/// MP3105 (exit 4), for a search that ended with `nothingFits`: the smallest
/// set of pins that is to blame, and what each of them could be with what then
/// is needed. None where it would not fit without pins either.
std::optional<Error> conflictOfPins(const PlanRequest &request,
                                    const Error &nothingFits,
                                    const PlanSearch &search);

} // namespace monarch::planner
