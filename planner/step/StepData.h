//===- StepData.h - the data files of the step model, built in ------------===//
#pragma once

#include <string_view>

namespace monarch::planner {

/// Text of planner/data/step/NAME.json.
std::string_view stepData(std::string_view name);

} // namespace monarch::planner
