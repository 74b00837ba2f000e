//===- LayoutText.h - layouts of a step in files and on the command line --===//
//
// The spelling of a layout's fields, and the pins of --fix for targets other
// than `monarch`. A pin is honoured or refused by name; none is ignored.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/support/Json.h"
#include "planner/step/Layout.h"

namespace monarch::planner {

/// "none", "selective", "full": what selective keeps is the target's.
std::string_view toString(Recompute recompute);
/// "1f1b", "zb1", "zb2".
std::string_view toString(Schedule schedule);

Json layoutToJson(const StepLayout &layout);
/// Errors go to the value's document.
StepLayout readStepLayout(const JsonValue &json);

/// What the user fixes of a layout.
struct FixedLayout {
  std::optional<int64_t> dp, tp, sp, cp, ep, pp, vpp, zero, dpShard, microBatch;
  std::optional<Recompute> recompute;
  std::optional<Schedule> schedule;
  /// schedule=interleaved1f1b: more than one chunk a stage.
  bool isInterleaved = false;
};

/// Adds the pins of one `--fix` text. MP3101 (exit 2): unknown key or value, or
/// a second value for one key.
std::optional<Error> addFixedFields(std::string_view text, FixedLayout &pins);
Json fixedJson(const FixedLayout &pins);

/// The layout that the pins say, the rest as small as it can be: degrees of
/// one, all other devices for dp, sharding and sequence parallelism as is usual
/// for the target. Need not be legal.
StepLayout pinnedLayout(const FixedLayout &pins, const Target &target,
                        const Machine &machine, int64_t globalBatch);

} // namespace monarch::planner
