//===- Calls.cpp - literals as boxed arguments ----------------------------===//

#include "test/strategies/Calls.h"

#include <ATen/ScalarOps.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <array>
#include <stdexcept>

namespace monarch::test {

namespace {

constexpr std::array<std::pair<DType, at::ScalarType>, 14> Types = {{
    {DType::Bool, at::kBool},
    {DType::UInt8, at::kByte},
    {DType::Int8, at::kChar},
    {DType::Int16, at::kShort},
    {DType::Int32, at::kInt},
    {DType::Int64, at::kLong},
    {DType::Float16, at::kHalf},
    {DType::BFloat16, at::kBFloat16},
    {DType::Float32, at::kFloat},
    {DType::Float64, at::kDouble},
    {DType::Float8E4M3, at::kFloat8_e4m3fn},
    {DType::Float8E5M2, at::kFloat8_e5m2},
    {DType::Complex64, at::kComplexFloat},
    {DType::Complex128, at::kComplexDouble},
}};

using Tensors = std::vector<at::Tensor>;

/// One literal, for an argument of this type.
class Converter {
public:
  Converter(const Tensors &operands, c10::TypePtr type)
      : operands(operands), type(std::move(type)) {}

  c10::IValue operator()(std::monostate) const { return {}; }
  c10::IValue operator()(const OperandArg &arg) const {
    return operands[arg.index];
  }
  c10::IValue operator()(const OperandListArg &arg) const {
    if (type->str().find('?') == std::string::npos) {
      c10::List<at::Tensor> list;
      for (int index : arg.indices)
        list.push_back(operands[index]);
      return list;
    }
    c10::List<std::optional<at::Tensor>> list;
    for (int index : arg.indices)
      list.push_back(index < 0 ? std::nullopt : std::optional(operands[index]));
    return list;
  }
  c10::IValue operator()(bool arg) const { return number(arg); }
  c10::IValue operator()(int64_t arg) const { return number(arg); }
  c10::IValue operator()(double arg) const { return number(arg); }
  c10::IValue operator()(const std::string &arg) const { return arg; }
  c10::IValue operator()(const std::vector<int64_t> &arg) const {
    return c10::List<int64_t>(arg);
  }
  c10::IValue operator()(const std::vector<double> &arg) const {
    return c10::List<double>(arg);
  }
  c10::IValue operator()(const std::vector<bool> &arg) const {
    c10::List<bool> list;
    for (bool flag : arg)
      list.push_back(flag);
    return list;
  }
  c10::IValue operator()(DType arg) const {
    return static_cast<int64_t>(scalarType(arg));
  }

private:
  template <typename T> c10::IValue number(T value) const {
    // A number in place of a tensor is one of no dims that yields in promotion.
    if (type->kind() != c10::TypeKind::TensorType)
      return type->kind() == c10::TypeKind::FloatType
                 ? c10::IValue(static_cast<double>(value))
                 : c10::IValue(value);
    at::Tensor tensor = c10::scalar_to_tensor(value);
    tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
    return tensor;
  }

  const Tensors &operands;
  c10::TypePtr type;
};

Tensors call(const std::string &name, std::vector<c10::IValue> stack) {
  size_t dot = name.find('.');
  auto handle = c10::Dispatcher::singleton().findSchemaOrThrow(
      name.substr(0, dot).c_str(),
      dot == std::string::npos ? "" : name.substr(dot + 1).c_str());
  handle.callBoxed(stack);
  Tensors results;
  for (const c10::IValue &value : stack)
    if (value.isTensor())
      results.push_back(value.toTensor());
    else if (value.isTensorList())
      for (const at::Tensor &tensor : value.toTensorVector())
        results.push_back(tensor);
    else
      results.emplace_back();
  return results;
}

std::vector<c10::Argument> argumentsOf(const std::string &name) {
  size_t dot = name.find('.');
  return c10::Dispatcher::singleton()
      .findSchemaOrThrow(
          name.substr(0, dot).c_str(),
          dot == std::string::npos ? "" : name.substr(dot + 1).c_str())
      .schema()
      .arguments();
}

c10::TypePtr plainType(const c10::Argument &argument) {
  c10::TypePtr type = argument.type();
  if (type->kind() == c10::TypeKind::OptionalType)
    return type->expectRef<c10::OptionalType>().getElementType();
  return type;
}

template <typename Arg, typename Resolve>
Tensors callWith(const std::string &name, const std::vector<Arg> &args,
                 const Tensors &operands, Resolve resolve) {
  std::vector<c10::Argument> arguments = argumentsOf(name);
  if (arguments.size() != args.size())
    throw std::logic_error(name + ": " + std::to_string(args.size()) +
                           " args, the schema has " +
                           std::to_string(arguments.size()));
  std::vector<c10::IValue> stack;
  for (size_t k = 0; k < args.size(); ++k)
    stack.push_back(
        resolve(args[k], Converter(operands, plainType(arguments[k]))));
  return call(name, std::move(stack));
}

/// Graph literals: sizes of whole results.
struct GraphResolver {
  const Graph &graph;
  const Op &op;
  const Converter &convert;

  template <typename T> c10::IValue operator()(const T &arg) const {
    return convert(arg);
  }
  c10::IValue operator()(const ResultSizes &arg) const {
    return convert(graph.value(op.results[arg.result]).shape);
  }
  c10::IValue operator()(const ResultSize &arg) const {
    return convert(graph.value(op.results[arg.result]).shape[arg.dim]);
  }
  c10::IValue operator()(const ResultsSizes &arg) const {
    std::vector<int64_t> sizes;
    for (ValueId result : op.results)
      sizes.push_back(graph.value(result).shape[arg.dim]);
    return convert(sizes);
  }
};

/// Program literals: expressions at a rank.
struct RankResolver {
  const RankView &rank;
  const Converter &convert;

  template <typename T> c10::IValue operator()(const T &arg) const {
    return convert(arg);
  }
  c10::IValue operator()(const Expr &arg) const {
    return convert(rank.evaluate(arg));
  }
  c10::IValue operator()(const std::vector<Expr> &arg) const {
    return convert(rank.evaluate(arg));
  }
};

} // namespace

at::ScalarType scalarType(DType type) {
  for (auto [own, torch] : Types)
    if (own == type)
      return torch;
  throw std::logic_error("no such type");
}

DType dtypeOf(at::ScalarType type) {
  for (auto [own, torch] : Types)
    if (torch == type)
      return own;
  throw std::logic_error("no such type");
}

Tensors callGraphOp(const Op &op, const Tensors &operands, const Graph &graph) {
  return callWith(op.name, op.args, operands,
                  [&](const Arg &arg, const Converter &convert) {
                    return std::visit(GraphResolver{graph, op, convert}, arg);
                  });
}

Tensors callInstruction(const Instruction &instruction, const Tensors &operands,
                        const RankView &rank) {
  return callWith(instruction.name, instruction.args, operands,
                  [&](const CallArg &arg, const Converter &convert) {
                    return std::visit(RankResolver{rank, convert}, arg);
                  });
}

} // namespace monarch::test
