//===- PinNames.h - the names of a layout's fields ------------------------===//
#pragma once

#include "planner/choose/ChooseLayout.h"

namespace monarch::planner {

std::string nameOf(Recompute mode);
std::string nameOf(Schedule schedule);
/// All fields of a layout by the names of pins.
std::vector<std::pair<std::string, std::string>>
valuesOf(const StepLayout &layout);
LayoutPins withoutPin(const LayoutPins &pins, std::string_view name);

} // namespace monarch::planner
