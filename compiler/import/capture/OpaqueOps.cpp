//===- OpaqueOps.cpp - ops of other libraries -----------------------------===//
//
// Whatever LibTorch here does not know: written down with the shapes that the
// file gives its results. Nobody but its library can run or derive it.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/capture/Interpreter.h"

#include <ATen/core/grad_mode.h>

namespace monarch {

namespace {

/// An argument that is no tensor.
struct Literal {
  const Interpreter::Values &values;

  int64_t number(const SymbolName &symbol) const {
    return lookUp(values, symbol.name).toInt();
  }
  Arg operator()(const SymbolName &symbol) const { return number(symbol); }
  Arg operator()(bool value) const { return value; }
  Arg operator()(int64_t value) const { return value; }
  Arg operator()(double value) const { return value; }
  Arg operator()(const std::string &value) const { return value; }
  Arg operator()(const std::vector<double> &value) const { return value; }
  Arg operator()(const std::vector<bool> &value) const { return value; }
  Arg operator()(DType value) const { return value; }
  Arg operator()(const std::vector<ExportedInt> &ints) const {
    std::vector<int64_t> list;
    for (const ExportedInt &element : ints) {
      const auto *symbol = std::get_if<SymbolName>(&element);
      list.push_back(symbol != nullptr ? number(*symbol)
                                       : std::get<int64_t>(element));
    }
    return list;
  }
  /// None, devices, layouts, memory formats.
  template <typename Other> Arg operator()(const Other &) const { return {}; }
};

} // namespace

void Interpreter::runOpaque(const ExportedGraph &graph,
                            const ExportedNode &node, const std::string &name,
                            Values &values) {
  Op op;
  op.name = name;
  bool isDifferentiated = false;
  auto operand = [&](const TensorName &tensor) {
    if (tensor.name.empty())
      return None;
    const c10::IValue &value = lookUp(values, tensor.name);
    isDifferentiated |= value.toTensor().requires_grad();
    op.operands.push_back(recorder.idOf(value.toTensor()));
    return static_cast<int>(op.operands.size() - 1);
  };
  for (const auto &[argument, value] : node.inputs) {
    if (const auto *tensor = std::get_if<TensorName>(&value)) {
      const int index = operand(*tensor);
      op.args.push_back(index == None ? Arg() : OperandArg{index});
    } else if (const auto *list =
                   std::get_if<std::vector<TensorName>>(&value)) {
      OperandListArg indices;
      for (const TensorName &tensor : *list)
        indices.indices.push_back(operand(tensor));
      op.args.push_back(indices);
    } else {
      op.args.push_back(std::visit(Literal{values}, value));
    }
  }
  if (isDifferentiated && at::GradMode::is_enabled())
    throw CaptureFailure(
        {"MP1025", ExitCode::BadInput,
         name + ": an op of a library that is not here, so its derivative is "
                "not known, and gradients would have to pass it",
         originText(node.module, node.source),
         "export forward and backward together "
         "(torch.export.experimental._export_forward_backward), or plan with "
         "--mode infer"});

  std::vector<std::string> names;
  std::vector<Value> results;
  for (const ExportedArgument &output : node.outputs) {
    const auto *tensor = std::get_if<TensorName>(&output);
    if (tensor == nullptr)
      failAt(node, "a result that is no tensor");
    auto type = graph.tensors.find(tensor->name);
    if (type == graph.tensors.end())
      failAt(node, "a result without a shape in the file");
    Value value;
    value.type = promoted(type->second.type);
    for (const ExportedSize &size : type->second.sizes) {
      auto extent = evaluate(size, symbols);
      if (!extent)
        failAt(node, "a result whose size depends on data");
      value.shape.push_back(*extent);
    }
    names.push_back(tensor->name);
    results.push_back(std::move(value));
  }
  if (results.empty())
    failAt(node, "an op without results, which writes in place");
  const auto tensors = recorder.recordOpaque(std::move(op), std::move(results));
  for (size_t i = 0; i < tensors.size(); ++i)
    values[names[i]] = tensors[i];
}

} // namespace monarch
