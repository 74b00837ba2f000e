//===- Interpreter.cpp - arguments, nodes and nested graphs ---------------===//
//
// Arguments that the file leaves out take the schema's defaults. Each result is
// compared with the shape in the file, which catches a wrong shape rule where
// it is.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/capture/Interpreter.h"

#include <ATen/ops/scalar_tensor.h>
#include <fmt/format.h>

namespace monarch {

namespace {

using c10::IValue;
using c10::TypeKind;

/// A number where the schema wants a tensor.
IValue wrappedNumber(const c10::Scalar &number) {
  c10::impl::ExcludeDispatchKeyGuard direct(c10::DispatchKeySet(
      {c10::DispatchKey::Fake, c10::DispatchKey::Functionalize}));
  at::Tensor tensor = at::scalar_tensor(
      number, at::TensorOptions(c10::kCPU).dtype(number.type()));
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

c10::TypePtr withoutOptional(const c10::TypePtr &type) {
  return type && type->kind() == TypeKind::OptionalType
             ? type->castRaw<c10::OptionalType>()->getElementType()
             : type;
}

/// The kind of the elements of a list type; AnyType where it is no list.
TypeKind elementKind(const c10::TypePtr &type) {
  return type && type->kind() == TypeKind::ListType
             ? type->castRaw<c10::ListType>()->getElementType()->kind()
             : TypeKind::AnyType;
}

int64_t toTorch(MemoryFormat format) {
  switch (format) {
  case MemoryFormat::Contiguous:
    return static_cast<int64_t>(c10::MemoryFormat::Contiguous);
  case MemoryFormat::ChannelsLast:
    return static_cast<int64_t>(c10::MemoryFormat::ChannelsLast);
  case MemoryFormat::ChannelsLast3d:
    return static_cast<int64_t>(c10::MemoryFormat::ChannelsLast3d);
  case MemoryFormat::Preserve:
    break;
  }
  return static_cast<int64_t>(c10::MemoryFormat::Preserve);
}

bool isCheck(const std::string &target) {
  for (const char *prefix :
       {"torch.ops.aten._assert_tensor_metadata",
        "torch.ops.aten._assert_scalar", "torch.ops.aten.sym_constrain_range"})
    if (target.rfind(prefix, 0) == 0)
      return true;
  return false;
}

} // namespace

void failAt(const ExportedNode &node, std::string what) {
  throw CaptureFailure({"MP1008", ExitCode::BadInput,
                        node.target + ": " + std::move(what),
                        originText(node.module, node.source),
                        "rewrite this part of the model without it"});
}

const IValue &lookUp(const Interpreter::Values &values,
                     const std::string &name) {
  auto found = values.find(name);
  if (found == values.end())
    throw CaptureFailure(
        {"MP1007", ExitCode::BadInput,
         "the program uses '" + name + "' before anything makes it", "",
         "export the model again"});
  return found->second;
}

DType Interpreter::promoted(DType type) const {
  if (!promote || !isFloating(type))
    return type;
  return isComplex(type) ? DType::Complex128 : DType::Float64;
}

IValue Interpreter::convert(const ExportedArgument &argument,
                            const Values &values,
                            const c10::TypePtr &declared) const {
  const c10::TypePtr type = withoutOptional(declared);
  auto number = [&](const auto &value) -> IValue {
    if (type && type->kind() == TypeKind::TensorType)
      return wrappedNumber(value);
    if (type && type->kind() == TypeKind::FloatType)
      return static_cast<double>(value);
    return value;
  };
  struct Visitor {
    const Interpreter &self;
    const Values &values;
    const c10::TypePtr &type;
    decltype(number) &scalar;

    IValue operator()(std::monostate) const { return {}; }
    IValue operator()(const TensorName &tensor) const {
      return tensor.name.empty() ? IValue() : lookUp(values, tensor.name);
    }
    IValue operator()(const std::vector<TensorName> &names) const {
      if (elementKind(type) == TypeKind::OptionalType) {
        c10::List<std::optional<at::Tensor>> list;
        for (const TensorName &tensor : names)
          list.push_back(tensor.name.empty()
                             ? std::optional<at::Tensor>()
                             : lookUp(values, tensor.name).toTensor());
        return list;
      }
      c10::List<at::Tensor> list;
      for (const TensorName &tensor : names)
        list.push_back(lookUp(values, tensor.name).toTensor());
      return list;
    }
    IValue operator()(const SymbolName &symbol) const {
      const IValue &value = lookUp(values, symbol.name);
      return value.isInt() ? scalar(value.toInt()) : value;
    }
    IValue operator()(bool value) const { return value; }
    IValue operator()(int64_t value) const {
      // One number stands for each element of a list (stride=1).
      if (elementKind(type) == TypeKind::IntType)
        return c10::List<int64_t>({value});
      return scalar(value);
    }
    IValue operator()(double value) const { return scalar(value); }
    IValue operator()(const std::string &value) const { return value; }
    IValue operator()(const std::vector<ExportedInt> &ints) const {
      c10::List<int64_t> list;
      c10::List<double> reals;
      for (const ExportedInt &element : ints) {
        const auto *symbol = std::get_if<SymbolName>(&element);
        int64_t value = symbol != nullptr ? lookUp(values, symbol->name).toInt()
                                          : std::get<int64_t>(element);
        list.push_back(value);
        reals.push_back(static_cast<double>(value));
      }
      if (elementKind(type) == TypeKind::FloatType)
        return reals;
      return list;
    }
    IValue operator()(const std::vector<double> &reals) const {
      return c10::List<double>(c10::ArrayRef<double>(reals));
    }
    IValue operator()(const std::vector<bool> &bools) const {
      c10::List<bool> list;
      for (bool value : bools)
        list.push_back(value);
      return list;
    }
    IValue operator()(DType value) const {
      return static_cast<int64_t>(toScalarType(self.promoted(value)));
    }
    IValue operator()(MemoryFormat value) const { return toTorch(value); }
    IValue operator()(DeviceArgument) const { return c10::Device(c10::kCPU); }
    IValue operator()(LayoutArgument) const {
      return static_cast<int64_t>(c10::Layout::Strided);
    }
    IValue operator()(const std::shared_ptr<ExportedGraph> &) const {
      return {};
    }
  };
  return std::visit(Visitor{*this, values, type, number}, argument);
}

void Interpreter::bind(const ExportedNode &node,
                       const std::vector<IValue> &results,
                       Values &values) const {
  if (results.size() < node.outputs.size())
    failAt(node, "fewer results than the file names");
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const ExportedArgument &output = node.outputs[i];
    if (const auto *tensor = std::get_if<TensorName>(&output)) {
      values[tensor->name] = results[i];
    } else if (const auto *symbol = std::get_if<SymbolName>(&output)) {
      values[symbol->name] = results[i];
    } else if (const auto *list =
                   std::get_if<std::vector<TensorName>>(&output)) {
      const auto tensors = results[i].toTensorVector();
      if (tensors.size() != list->size())
        failAt(node, "another number of results than the file names");
      for (size_t k = 0; k < tensors.size(); ++k)
        values[(*list)[k].name] = tensors[k];
    }
  }
}

void Interpreter::checkShape(const ExportedGraph &graph,
                             const std::string &name,
                             const at::Tensor &tensor) const {
  auto found = graph.tensors.find(name);
  if (found == graph.tensors.end() || !tensor.defined())
    return;
  const ExportedTensor &expected = found->second;
  bool isEqual =
      tensor.scalar_type() == toScalarType(promoted(expected.type)) &&
      tensor.dim() == static_cast<int64_t>(expected.sizes.size());
  for (size_t i = 0; isEqual && i < expected.sizes.size(); ++i)
    isEqual = !expected.sizes[i].symbols.empty() ||
              expected.sizes[i].hint == tensor.size(static_cast<int64_t>(i));
  if (!isEqual)
    throw CaptureFailure(
        {"MP1011", ExitCode::Internal,
         fmt::format("{} was captured with another shape or type than the file "
                     "says",
                     name),
         recorder.module + " (" + recorder.source + ")", "report this model"});
}

void Interpreter::runOp(const ExportedGraph &graph, const ExportedNode &node,
                        Values &values) {
  // "torch.ops.<namespace>.<name>.<overload>"
  const std::string path = node.target.substr(10);
  const size_t first = path.find('.'), last = path.rfind('.');
  if (first == std::string::npos || first == last)
    failAt(node, "not the name of an op");
  const std::string name =
      path.substr(0, first) + "::" + path.substr(first + 1, last - first - 1);
  std::string overload = path.substr(last + 1);
  if (overload == "default")
    overload.clear();
  auto handle = c10::Dispatcher::singleton().findSchema({name, overload});
  if (!handle)
    return runOpaque(graph, node,
                     overload.empty() ? name : name + "." + overload, values);

  torch::jit::Stack stack;
  for (const c10::Argument &argument : handle->schema().arguments()) {
    auto given = std::find_if(
        node.inputs.begin(), node.inputs.end(),
        [&](const auto &input) { return input.first == argument.name(); });
    if (given != node.inputs.end())
      stack.push_back(convert(given->second, values, argument.real_type()));
    else if (argument.default_value())
      stack.push_back(*argument.default_value());
    else
      failAt(node, "argument '" + argument.name() + "' is missing");
  }
  handle->callBoxed(&stack);
  bind(node, stack, values);
  for (const ExportedArgument &output : node.outputs) {
    if (const auto *tensor = std::get_if<TensorName>(&output))
      if (!tensor->name.empty() && values.at(tensor->name).isTensor())
        checkShape(graph, tensor->name, values.at(tensor->name).toTensor());
    if (const auto *list = std::get_if<std::vector<TensorName>>(&output))
      for (const TensorName &tensor : *list)
        checkShape(graph, tensor.name, values.at(tensor.name).toTensor());
  }
}

IValue Interpreter::runSymbolic(const ExportedNode &node,
                                const Values &values) const {
  std::vector<int64_t> in;
  for (const auto &[name, argument] : node.inputs) {
    IValue value = convert(argument, values, nullptr);
    if (!value.isInt())
      failAt(node, "arithmetic on something that is no integer");
    in.push_back(value.toInt());
  }
  const std::string &target = node.target;
  if (in.size() == 1 && target == "_operator.neg")
    return -in[0];
  if (in.size() != 2)
    failAt(node, "unknown arithmetic on sizes");
  if (target == "_operator.add")
    return in[0] + in[1];
  if (target == "_operator.sub")
    return in[0] - in[1];
  if (target == "_operator.mul")
    return in[0] * in[1];
  if ((target == "_operator.floordiv" || target == "_operator.mod") &&
      in[1] > 0) {
    int64_t rest = ((in[0] % in[1]) + in[1]) % in[1];
    return target == "_operator.mod" ? rest : (in[0] - rest) / in[1];
  }
  if (target == "torch.sym_max")
    return std::max(in[0], in[1]);
  if (target == "torch.sym_min")
    return std::min(in[0], in[1]);
  if (target == "_operator.eq")
    return in[0] == in[1];
  if (target == "_operator.ne")
    return in[0] != in[1];
  if (target == "_operator.le")
    return in[0] <= in[1];
  if (target == "_operator.lt")
    return in[0] < in[1];
  if (target == "_operator.ge")
    return in[0] >= in[1];
  if (target == "_operator.gt")
    return in[0] > in[1];
  failAt(node, "unknown arithmetic on sizes");
}

void Interpreter::runNode(const ExportedGraph &graph, const ExportedNode &node,
                          Values &values) {
  if (isCheck(node.target))
    return;
  recorder.module = node.module;
  recorder.source = node.source;
  if (node.target.rfind("torch.ops.higher_order.", 0) == 0)
    runHigherOrder(node, values);
  else if (node.target.rfind("torch.ops.", 0) == 0)
    runOp(graph, node, values);
  else
    bind(node, {runSymbolic(node, values)}, values);
}

void Interpreter::run(const ExportedGraph &graph, Values &values) {
  for (const ExportedNode &node : graph.nodes) {
    try {
      runNode(graph, node, values);
    } catch (const c10::Error &error) {
      failAt(node, firstLine(error));
    }
  }
}

} // namespace monarch
