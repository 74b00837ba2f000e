//===- LayoutText.h - layouts of a step in files ------------------------===//
//
// The spelling of a layout's fields in plans.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/support/Json.h"
#include "planner/step/Layout.h"

namespace monarch::planner {

/// "none", "selective", "full": what selective keeps is the target's.
std::string_view toString(Recompute recompute);
/// "1f1b", "zb1", "zb2", "gpipe", "zbv", "vhalf".
std::string_view toString(Schedule schedule);

Json layoutToJson(const StepLayout &layout);
/// Errors go to the value's document.
StepLayout readStepLayout(const JsonValue &json);

} // namespace monarch::planner
