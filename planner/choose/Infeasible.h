//===- Infeasible.h - why no layout will do -------------------------------===//
#pragma once

#include "planner/choose/LayoutSearch.h"

namespace monarch::planner {

/// MP3310: what comes closest, the smallest cluster of such nodes that does,
/// and the most effective lever; or, where nothing divides, what is violated.
Error whyNothingFits(const ModelWork &work, const Machine &machine,
                     const Target &target, const LayoutRequest &request,
                     const LayoutSearch::Result &result);

/// What the layout that is pinned violates, the rest being plain.
std::string violationsOf(const ModelWork &work, const Machine &machine,
                         const Target &target, const LayoutRequest &request);

/// MP3311: the smallest set of pins that no layout honours, and what each of
/// them could be instead. MP3310 if it would not fit without pins either.
Error whyPinsConflict(const ModelWork &work, const Machine &machine,
                      const Target &target, const LayoutRequest &request,
                      const LayoutSearch::Result &result);

} // namespace monarch::planner
