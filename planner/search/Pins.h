//===- Pins.h - what the user fixes ---------------------------------------===//
//
// "dp=2,tp=2,micro_batch=4,schedule=gpipe": degrees and settings that the plan
// must have. A pin is honoured or refused by name; none is ignored.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "planner/plan/Plan.h"

namespace monarch::planner {

struct Pins {
  std::optional<int64_t> dp;
  std::optional<int64_t> tp;
  std::optional<int64_t> pp;
  std::optional<int64_t> microBatch;
  std::optional<ScheduleKind> schedule;
  /// "float32" or "none".
  std::optional<bool> masterWeights;
};

/// Adds the pins of one `--fix` text to those there. MP3101: unknown key or
/// value, or a second value for one key.
std::optional<Error> addPins(std::string_view text, Pins &pins);

} // namespace monarch::planner
