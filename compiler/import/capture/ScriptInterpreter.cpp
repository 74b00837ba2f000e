//===- ScriptInterpreter.cpp - functions, nodes, values -------------------===//
//
// Numbers that a trace keeps in tensors are real tensors, computed at once.
// Lists of optional tensors and element types are fitted to the op's schema,
// as the .pt2 interpreter does.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/capture/ScriptInterpreter.h"
#include "compiler/import/capture/ScriptProgram.h"

#include <ATen/FunctionalTensorWrapper.h>
#include <fmt/format.h>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/ir/ir.h>

namespace monarch {

namespace {

using c10::IValue;
using c10::TypeKind;
using torch::jit::Block;
using torch::jit::Node;
using torch::jit::Stack;
namespace prim = c10::prim;
namespace attr = c10::attr;

/// A loop that never ends is refused, not waited for.
constexpr int64_t StepLimit = 2'000'000;
constexpr size_t DepthLimit = 500;

c10::TypePtr withoutOptional(const c10::TypePtr &type) {
  return type->kind() == TypeKind::OptionalType
             ? type->castRaw<c10::OptionalType>()->getElementType()
             : type;
}

bool isOptionalTensor(const c10::TypePtr &type) {
  return type->kind() == TypeKind::OptionalType &&
         withoutOptional(type)->kind() == TypeKind::TensorType;
}

IValue optionalTensors(c10::ArrayRef<IValue> elements) {
  c10::List<std::optional<at::Tensor>> list;
  for (const IValue &element : elements)
    list.push_back(element.toOptional<at::Tensor>());
  return list;
}

/// Lists of LibTorch's own element types where it has them: kernels ask.
IValue listOf(const c10::TypePtr &element, std::vector<IValue> elements) {
  if (isOptionalTensor(element))
    return optionalTensors(elements);
  const auto filled = [&](auto list, auto convert) -> IValue {
    for (const IValue &value : elements)
      list.push_back(convert(value));
    return list;
  };
  switch (element->kind()) {
  case TypeKind::TensorType:
    return filled(c10::List<at::Tensor>(),
                  [](const IValue &value) { return value.toTensor(); });
  case TypeKind::IntType:
    return filled(c10::List<int64_t>(),
                  [](const IValue &value) { return value.toInt(); });
  case TypeKind::FloatType:
    return filled(c10::List<double>(),
                  [](const IValue &value) { return value.toDouble(); });
  case TypeKind::BoolType:
    return filled(c10::List<bool>(),
                  [](const IValue &value) { return value.toBool(); });
  default:
    return filled(c10::impl::GenericList(element),
                  [](const IValue &value) { return value; });
  }
}

void collect(const IValue &value, const std::string &name,
             std::vector<ScriptOutput> &outputs) {
  if (value.isTuple()) {
    const auto tuple = value.toTuple();
    const auto &schema = tuple->type()->schema();
    for (size_t i = 0; i < tuple->elements().size(); ++i)
      collect(tuple->elements()[i], schema ? schema->arguments()[i].name() : "",
              outputs);
  } else if (value.isGenericDict()) {
    for (const auto &entry : value.toGenericDict())
      collect(entry.value(),
              entry.key().isString() ? entry.key().toStringRef() : "", outputs);
  } else if (value.isList()) {
    for (const IValue &element : value.toListRef())
      collect(element, "", outputs);
  } else {
    outputs.push_back(
        {name, value.isTensor() ? value.toTensor() : at::Tensor()});
  }
}

const c10::DispatchKeySet Recording({c10::DispatchKey::Fake,
                                     c10::DispatchKey::Functionalize});

/// A trace writes Python's numbers as tensors of its widest types.
at::Tensor asNumber(const at::Tensor &tensor) {
  const auto type = tensor.scalar_type();
  if (type != at::kDouble && type != at::kLong && type != at::kBool)
    return tensor;
  c10::impl::ExcludeDispatchKeyGuard direct(Recording);
  at::Tensor number = tensor.detach();
  number.unsafeGetTensorImpl()->set_wrapped_number(true);
  return number;
}

/// A tensor that was computed from sizes and numbers alone.
bool isReal(const IValue &value) {
  return value.isTensor() && value.toTensor().defined() &&
         !at::functionalization::impl::isFunctionalTensor(value.toTensor());
}

} // namespace

void ScriptInterpreter::fail(const Node &node, std::string what) const {
  throw CaptureFailure(
      {"MP1008", ExitCode::BadInput,
       std::string(node.kind().toQualString()) + ": " + std::move(what),
       originText(recorder.module, recorder.source),
       "rewrite this part of the model without it"});
}

std::vector<IValue> ScriptInterpreter::inputsOf(const Node &node,
                                                const Frame &frame) const {
  std::vector<IValue> inputs;
  for (const torch::jit::Value *input : node.inputs())
    inputs.push_back(frame.at(input));
  return inputs;
}

IValue ScriptInterpreter::constant(const Node &node) {
  auto [found, isNew] = constants.try_emplace(&node);
  if (!isNew)
    return found->second;
  found->second = torch::jit::toIValue(node.output()).value_or(IValue());
  if (!found->second.isTensor())
    return found->second;
  const at::Tensor tensor = found->second.toTensor();
  if (tensor.dim() == 0)
    return found->second = asNumber(tensor);
  for (const auto &[known, leaf] :
       tensorsInCode[tensor.storage().unsafeGetStorageImpl()])
    if (known->tensor.sizes() == tensor.sizes() &&
        known->tensor.strides() == tensor.strides() &&
        known->tensor.storage_offset() == tensor.storage_offset())
      return found->second = leaf;
  fail(node, "a tensor in the code that the file does not hold");
}

IValue &ScriptInterpreter::attribute(const Node &node, Frame &frame) {
  const auto object = frame.at(node.input(0)).toObject();
  const size_t slot = object->type()->getAttributeSlot(node.s(attr::name));
  auto [found, isNew] = attributes.try_emplace({object.get(), slot});
  if (isNew)
    found->second = object->getSlot(slot);
  return found->second;
}

bool ScriptInterpreter::runStructure(const Node &node, Frame &frame) {
  const auto in = [&](size_t i) -> const IValue & {
    return frame.at(node.input(i));
  };
  const auto out = [&](IValue value) {
    frame[node.output()] = std::move(value);
    return true;
  };
  const auto spread = [&](c10::ArrayRef<IValue> values) {
    if (values.size() != node.outputs().size())
      fail(node, "another number of values than the program expects");
    for (size_t i = 0; i < values.size(); ++i)
      frame[node.outputs()[i]] = values[i];
    return true;
  };
  switch (node.kind()) {
  case prim::Constant:
    return out(constant(node));
  case prim::GetAttr:
    return out(attribute(node, frame));
  case prim::SetAttr:
    attribute(node, frame) = in(1);
    return true;
  case prim::TupleConstruct: {
    const auto type = node.output()->type()->expect<c10::TupleType>();
    std::vector<IValue> elements = inputsOf(node, frame);
    return out(type->schema()
                   ? c10::ivalue::Tuple::createNamed(std::move(elements), type)
                   : c10::ivalue::Tuple::create(std::move(elements)));
  }
  case prim::TupleUnpack:
    return spread(in(0).toTupleRef().elements());
  case prim::TupleSlice: {
    const auto &elements = in(0).toTupleRef().elements();
    const auto begin = elements.begin();
    return out(c10::ivalue::Tuple::create(std::vector<IValue>(
        begin + node.i(attr::beg), begin + node.i(attr::end))));
  }
  case prim::ListConstruct:
    return out(
        listOf(node.output()->type()->expect<c10::ListType>()->getElementType(),
               inputsOf(node, frame)));
  case prim::ListUnpack:
    return spread(in(0).toListRef());
  case prim::DictConstruct: {
    const auto type = node.output()->type()->expect<c10::DictType>();
    c10::impl::GenericDict dict(type->getKeyType(), type->getValueType());
    for (size_t i = 0; i + 1 < node.inputs().size(); i += 2)
      dict.insert_or_assign(in(i), in(i + 1));
    return out(dict);
  }
  case prim::isinstance: {
    const c10::TypePtr type = in(0).type();
    for (const c10::TypePtr &wanted : node.tys(attr::types))
      if (type->isSubtypeOf(*wanted))
        return out(true);
    return out(false);
  }
  case prim::unchecked_cast:
  case prim::unchecked_unwrap_optional:
    return out(in(0));
  case prim::Uninitialized:
    return out(IValue::uninitialized());
  case prim::CreateObject: {
    const auto type = node.output()->type()->expect<c10::ClassType>();
    return out(c10::ivalue::Object::create(
        c10::StrongTypePtr(type->compilation_unit(), type),
        type->numAttributes()));
  }
  case prim::RaiseException:
    fail(node, in(0).isString() ? in(0).toStringRef() : "the program raises");
  case c10::aten::warn:
    return true;
  default:
    return false;
  }
}

bool ScriptInterpreter::runCall(const Node &node, Frame &frame) {
  std::vector<IValue> inputs;
  switch (node.kind()) {
  case prim::CallMethod: {
    inputs = inputsOf(node, frame);
    const IValue object = inputs.front();
    inputs.erase(inputs.begin());
    frame[node.output()] =
        callMethod(object, node.s(attr::name), std::move(inputs));
    return true;
  }
  case prim::CallFunction: {
    inputs = inputsOf(node, frame);
    inputs.erase(inputs.begin());
    auto *function =
        node.input(0)->type()->expect<c10::FunctionType>()->function();
    frame[node.output()] = call(*function, std::move(inputs));
    return true;
  }
  case prim::Enter:
    frame[node.output()] = callMethod(frame.at(node.input(0)), "__enter__", {});
    return true;
  case prim::Exit:
    callMethod(frame.at(node.input(0)), "__exit__", {{}, {}, {}});
    return true;
  case prim::If: {
    const bool condition = frame.at(node.input(0)).toBool();
    const Block &block = *node.blocks().at(condition ? 0 : 1);
    runBlock(block, frame);
    for (size_t i = 0; i < block.outputs().size(); ++i)
      frame[node.outputs()[i]] = frame.at(block.outputs()[i]);
    return true;
  }
  case prim::Loop:
    runLoop(node, frame);
    return true;
  default:
    return false;
  }
}

/// (trips, condition, carried...) -> carried...; the body is (trip, carried...)
/// -> (condition, carried...).
void ScriptInterpreter::runLoop(const Node &node, Frame &frame) {
  const Block &body = *node.blocks().at(0);
  const int64_t trips = frame.at(node.input(0)).toInt();
  bool goesOn = frame.at(node.input(1)).toBool();
  std::vector<IValue> carried;
  for (size_t i = 2; i < node.inputs().size(); ++i)
    carried.push_back(frame.at(node.input(i)));
  for (int64_t trip = 0; goesOn && trip < trips; ++trip) {
    frame[body.inputs().at(0)] = trip;
    for (size_t i = 0; i < carried.size(); ++i)
      frame[body.inputs()[i + 1]] = carried[i];
    runBlock(body, frame);
    goesOn = frame.at(body.outputs().at(0)).toBool();
    for (size_t i = 0; i < carried.size(); ++i)
      carried[i] = frame.at(body.outputs()[i + 1]);
    if (++steps > StepLimit)
      fail(node, "the loop does not end");
  }
  for (size_t i = 0; i < carried.size(); ++i)
    frame[node.outputs()[i]] = carried[i];
}

/// A list of optional tensors says so; devices are the CPU; types of elements
/// are promoted.
void ScriptInterpreter::fit(const c10::FunctionSchema &schema,
                            Stack &stack) const {
  for (size_t i = 0; i < schema.arguments().size() && i < stack.size(); ++i) {
    IValue &value = stack[i];
    const c10::TypePtr type =
        withoutOptional(schema.arguments()[i].real_type());
    if (value.isDevice())
      value = c10::Device(c10::kCPU);
    else if (value.isList() && type->kind() == TypeKind::ListType &&
             isOptionalTensor(type->castRaw<c10::ListType>()->getElementType()))
      value = optionalTensors(value.toListRef());
    else if (promote && value.isInt() &&
             type->kind() == TypeKind::ScalarTypeType &&
             at::isFloatingType(static_cast<at::ScalarType>(value.toInt())))
      value = static_cast<int64_t>(at::kDouble);
  }
}

void ScriptInterpreter::runOp(const Node &node, Frame &frame) {
  Stack stack = inputsOf(node, frame);
  const torch::jit::Operator *found = node.maybeOperator();
  if (found == nullptr)
    fail(node, "LibTorch does not know this op");
  const c10::FunctionSchema &schema = found->schema();
  fit(schema, stack);
  if (schema.is_vararg())
    stack.emplace_back(static_cast<int64_t>(node.inputs().size()));
  if (schema.name() == "aten::_convolution") {
    // What a trace calls: the last four are about cuDNN.
    stack.resize(9);
    c10::Dispatcher::singleton()
        .findSchemaOrThrow("aten::convolution", "")
        .callBoxed(stack);
  } else if (schema.name() == "aten::repeat_interleave" &&
             schema.overload_name() == "self_Tensor" && isReal(stack.at(1)) &&
             stack[1].toTensor().numel() == 1) {
    // A size of the traced model, which is one number.
    stack[1] = stack[1].toTensor().item().toLong();
    c10::Dispatcher::singleton()
        .findSchemaOrThrow("aten::repeat_interleave", "self_int")
        .callBoxed(stack);
  } else {
    auto operation = operations.find(&node);
    if (operation == operations.end())
      operation = operations.emplace(&node, node.getOperation()).first;
    std::optional<c10::impl::ExcludeDispatchKeyGuard> direct;
    if (node.kind() == prim::NumToTensor)
      direct.emplace(Recording);
    operation->second(stack);
  }
  if (stack.size() != node.outputs().size())
    fail(node, "another number of results than the program expects");
  for (size_t i = 0; i < stack.size(); ++i)
    frame[node.outputs()[i]] = std::move(stack[i]);
}

void ScriptInterpreter::runNode(const Node &node, Frame &frame) {
  if (++steps > StepLimit)
    fail(node, "the program does not end");
  recorder.source = script.sourceOf(node);
  try {
    if (!runStructure(node, frame) && !runCall(node, frame))
      runOp(node, frame);
  } catch (const CaptureFailure &) {
    throw;
  } catch (const c10::Error &error) {
    fail(node, firstLine(error));
  } catch (const std::exception &error) {
    fail(node, error.what());
  }
}

void ScriptInterpreter::runBlock(const Block &block, Frame &frame) {
  for (const Node *node : block.nodes())
    runNode(*node, frame);
}

IValue ScriptInterpreter::callMethod(const IValue &object,
                                     const std::string &name,
                                     std::vector<IValue> rest) {
  const auto self = object.toObject();
  rest.insert(rest.begin(), object);
  torch::jit::Function &method = self->type()->getMethod(name);
  const std::string *path = script.pathOf(self.get());
  if (path == nullptr)
    return call(method, std::move(rest));
  const std::string caller = std::exchange(recorder.module, *path);
  IValue result = call(method, std::move(rest));
  recorder.module = caller;
  return result;
}

IValue ScriptInterpreter::call(torch::jit::Function &function,
                               std::vector<IValue> arguments) {
  const auto &graph = *torch::jit::toGraphFunction(function).graph();
  TORCH_CHECK(++depth < DepthLimit, "calls lie too deep");
  for (const c10::Argument &argument : function.getSchema().arguments())
    if (arguments.size() < graph.inputs().size() && argument.default_value() &&
        &argument - function.getSchema().arguments().data() ==
            static_cast<std::ptrdiff_t>(arguments.size()))
      arguments.push_back(*argument.default_value());
  TORCH_CHECK(arguments.size() == graph.inputs().size(), function.name(),
              " is called with another number of arguments");
  Frame frame;
  for (size_t i = 0; i < arguments.size(); ++i)
    frame[graph.inputs()[i]] = std::move(arguments[i]);
  runBlock(*graph.block(), frame);
  --depth;
  return frame.at(graph.outputs().at(0));
}

std::vector<ScriptOutput> ScriptInterpreter::run(Interpreter::Values &values) {
  for (const ScriptTensor &tensor : script.tensors())
    for (const auto &place : tensor.places)
      attributes[place] = values.at(scriptPlaceholder(tensor.names.front()));
  for (const ScriptTensor &tensor : script.constants())
    if (tensor.tensor.dim() > 0)
      tensorsInCode[tensor.tensor.storage().unsafeGetStorageImpl()]
          .emplace_back(&tensor,
                        values.at(scriptPlaceholder(tensor.names.front())));
  const auto method = script.module().get_method("forward");
  std::vector<IValue> arguments;
  const auto &schema = method.function().getSchema();
  for (size_t i = 1; i < schema.arguments().size(); ++i) {
    const c10::Argument &argument = schema.arguments()[i];
    auto found = values.find(argument.name());
    arguments.push_back(found != values.end()
                            ? found->second
                            : argument.default_value().value_or(IValue()));
  }
  std::vector<ScriptOutput> outputs;
  collect(
      callMethod(script.module()._ivalue(), "forward", std::move(arguments)),
      "", outputs);
  for (const ScriptTensor &tensor : script.tensors())
    if (tensor.kind == ValueKind::Buffer)
      values[scriptPlaceholder(tensor.names.front())] =
          attributes.at(tensor.places.front());
  return outputs;
}

} // namespace monarch
