//===- ShapeRules.h - shapes that LibTorch does not know without data -----===//
//
// Ops that have no Meta kernel, or one that reads data. A rule takes the op's
// arguments over meta tensors and pushes the results; ops that only small or
// rare models use need none: they are run once on zeros.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>

#include <string>

namespace monarch {

using ShapeRule = void (*)(const std::vector<c10::IValue> &arguments,
                           torch::jit::Stack &results);

/// By schema name ("aten::where.self"); null when LibTorch's own does.
ShapeRule shapeRuleOf(const std::string &op);

/// Shapes and strides by running the CPU kernel on zeros. False where they
/// depend on data, where the operands are large, or where there is no kernel.
bool shapesFromZeros(const c10::OperatorHandle &handle,
                     const std::vector<c10::IValue> &arguments,
                     torch::jit::Stack &results);

} // namespace monarch
