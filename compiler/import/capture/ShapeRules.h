//===- ShapeRules.h - shapes that LibTorch does not know without data -----===//
//
// Ops that have no Meta kernel, or one that reads data. A rule takes the op's
// arguments over meta tensors and pushes the results.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>

#include <string>

namespace monarch {

using ShapeRule = void (*)(const std::vector<c10::IValue> &arguments,
                           torch::jit::Stack &results);

/// By schema name ("aten::where.self"); null when LibTorch's own does.
ShapeRule shapeRuleOf(const std::string &op);

} // namespace monarch
