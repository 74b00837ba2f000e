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

#include <map>
#include <string>

namespace monarch {

using ShapeRule = void (*)(const std::vector<c10::IValue> &arguments,
                           torch::jit::Stack &results);

using ShapeTable = std::map<std::string, ShapeRule>;

/// One function a family of ops.
void addSpatialShapes(ShapeTable &table);
void addReductionShapes(ShapeTable &table);

/// Contiguous, with the options of another tensor.
at::Tensor emptyOf(at::IntArrayRef sizes, const at::Tensor &like);
/// The shape of one operand.
template <size_t Operand>
void likeOperand(const std::vector<c10::IValue> &arguments,
                 torch::jit::Stack &results) {
  const at::Tensor &x = arguments[Operand].toTensor();
  results.emplace_back(emptyOf(x.sizes(), x));
}

/// By schema name ("aten::where.self"); null when LibTorch's own does.
ShapeRule shapeRuleOf(const std::string &op);

/// Shapes and strides by running the CPU kernel on zeros. False where they
/// depend on data, where the operands are large, or where there is no kernel.
bool shapesFromZeros(const c10::OperatorHandle &handle,
                     const std::vector<c10::IValue> &arguments,
                     torch::jit::Stack &results);

} // namespace monarch
