//===- Recorder.cpp - one dispatcher call, one op -------------------------===//
//
// Arguments are converted by the schema's types. A number that PyTorch wrapped
// into a tensor stays a number in the tensor's place; another real scalar is
// spelled aten::scalar_tensor. Devices, layouts and pinning are the executor's:
// they are left out.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/capture/Recorder.h"
#include "compiler/import/capture/ShapeRules.h"
#include "runtime/ops/Ops.h"

#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/record_function.h>
#include <fmt/format.h>

namespace monarch {

namespace {

using c10::DispatchKey;
using c10::DispatchKeySet;
using c10::IValue;
using c10::TypeKind;
namespace functionalization = at::functionalization::impl;

const DispatchKeySet Recording({DispatchKey::Fake, DispatchKey::Functionalize});

Error unsupported(const Recorder &recorder, std::string what) {
  return {"MP1008", ExitCode::BadInput, std::move(what),
          recorder.module.empty()
              ? recorder.source
              : recorder.module + " (" + recorder.source + ")",
          "rewrite this part of the model without it"};
}

template <typename Visit> void eachTensor(const IValue &value, Visit visit) {
  if (value.isTensor()) {
    visit(value.toTensor());
  } else if (value.isList()) {
    for (const IValue &element : value.toListRef())
      if (element.isTensor())
        visit(element.toTensor());
  }
}

c10::TypePtr withoutOptional(const c10::TypePtr &type) {
  return type->kind() == TypeKind::OptionalType
             ? type->castRaw<c10::OptionalType>()->getElementType()
             : type;
}

bool isTensorList(const c10::TypePtr &type) {
  return type->kind() == TypeKind::ListType &&
         withoutOptional(type->castRaw<c10::ListType>()->getElementType())
                 ->kind() == TypeKind::TensorType;
}

void useDevice(const c10::FunctionSchema &schema, torch::jit::Stack &stack,
               c10::DeviceType device) {
  size_t count = schema.arguments().size();
  for (size_t i = 0; i < count; ++i) {
    IValue &value = stack[stack.size() - count + i];
    if (value.isDevice() ||
        (value.isNone() && schema.arguments()[i].name() == "device"))
      value = c10::Device(device);
  }
}

} // namespace

std::string firstLine(const c10::Error &error) {
  const std::string text = error.what_without_backtrace();
  return text.substr(0, text.find('\n'));
}

namespace {

/// Runs the Meta kernel. What has none and writes to its operands gives those
/// back.
void askShape(const c10::OperatorHandle &handle, torch::jit::Stack &stack) {
  const auto &arguments = handle.schema().arguments();
  const size_t base = stack.size() - arguments.size();
  const torch::jit::Stack given(stack.begin() + static_cast<int64_t>(base),
                                stack.end());
  try {
    handle.redispatchBoxed(DispatchKeySet(DispatchKey::Meta), &stack);
  } catch (const c10::Error &) {
    stack.resize(base);
    for (size_t i = 0; i < arguments.size(); ++i)
      if (arguments[i].alias_info() != nullptr &&
          arguments[i].alias_info()->isWrite())
        stack.push_back(given[i]);
    if (stack.size() != base + handle.schema().returns().size())
      throw;
  }
}

std::string memoryFormatName(int64_t value) {
  switch (static_cast<c10::MemoryFormat>(value)) {
  case c10::MemoryFormat::Contiguous:
    return "contiguous_format";
  case c10::MemoryFormat::Preserve:
    return "preserve_format";
  case c10::MemoryFormat::ChannelsLast:
    return "channels_last";
  default:
    return "channels_last_3d";
  }
}

Arg scalarArg(const c10::Scalar &scalar) {
  if (scalar.isBoolean())
    return scalar.toBool();
  if (scalar.isIntegral(/*includeBool=*/false))
    return scalar.toLong();
  return scalar.toDouble();
}

std::vector<int64_t> intList(const IValue &value) {
  std::vector<int64_t> list;
  for (const IValue &element : value.toListRef())
    list.push_back(element.isSymInt()
                       ? element.toSymInt().guard_int(__FILE__, __LINE__)
                       : element.toInt());
  return list;
}

Recorder *current = nullptr;

void recordKernel(const c10::OperatorHandle &handle, DispatchKeySet,
                  torch::jit::Stack *stack) {
  currentRecorder().record(handle, *stack);
}

} // namespace

struct Recorder::Call {
  Op op;
  /// The arguments over meta tensors.
  torch::jit::Stack meta;
};

Recorder &currentRecorder() {
  TORCH_CHECK(current != nullptr, "no recording is under way");
  return *current;
}

at::Tensor Recorder::leaf(ValueKind kind, std::string name, DType type,
                          const std::vector<int64_t> &shape) {
  c10::impl::ExcludeDispatchKeyGuard guard(Recording);
  at::NoGradGuard noGradient;
  Value value;
  value.kind = kind;
  value.name = std::move(name);
  value.type = type;
  value.shape = shape;
  at::Tensor meta =
      at::empty(shape, at::TensorOptions(c10::kMeta).dtype(toScalarType(type)));
  return functionalization::to_functional_tensor(
      RecordedTensor::wrap(meta, addValue(std::move(value))));
}

std::vector<at::Tensor> Recorder::recordOpaque(Op op,
                                               std::vector<Value> results) {
  c10::impl::ExcludeDispatchKeyGuard guard(Recording);
  at::NoGradGuard noGradient;
  op.phase = phase;
  op.module = module;
  op.source = source;
  std::vector<at::Tensor> tensors;
  for (size_t i = 0; i < results.size(); ++i) {
    Value &value = results[i];
    at::Tensor meta = at::empty(
        value.shape,
        at::TensorOptions(c10::kMeta).dtype(toScalarType(value.type)));
    value.producer = static_cast<OpId>(graph.ops.size());
    value.result = static_cast<int>(i);
    op.results.push_back(addValue(std::move(value)));
    tensors.push_back(functionalization::to_functional_tensor(
        RecordedTensor::wrap(meta, op.results.back())));
  }
  graph.ops.push_back(std::move(op));
  return tensors;
}

ValueId Recorder::idOf(const at::Tensor &tensor) const {
  if (!tensor.defined())
    return None;
  at::Tensor inner = tensor;
  if (functionalization::isFunctionalTensor(tensor)) {
    at::DisableRecordFunctionGuard unobserved;
    at::AutoDispatchBelowADInplaceOrView below;
    functionalization::sync(tensor);
    inner = functionalization::from_functional_tensor(tensor);
  }
  const RecordedTensor *recorded = RecordedTensor::of(inner);
  return recorded != nullptr ? recorded->id : None;
}

ValueId Recorder::addValue(Value value) {
  value.batch.assign(value.shape.size(), 0);
  graph.values.push_back(std::move(value));
  return static_cast<ValueId>(graph.values.size() - 1);
}

int Recorder::addOperand(Op &op, ValueId id) {
  op.operands.push_back(id);
  return static_cast<int>(op.operands.size() - 1);
}

Arg Recorder::constantArg(Op &op, const at::Tensor &tensor) {
  if (tensor.dim() != 0)
    throw CaptureFailure(unsupported(
        *this, op.name + " takes a tensor that is computed outside the model"));
  at::AutoDispatchSkipFunctionalize direct;
  at::AutoDispatchBelowAutograd below;
  Arg number = scalarArg(tensor.item());
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number())
    return number;
  Op scalar;
  scalar.name = "aten::scalar_tensor";
  scalar.args = {number, *toDType(tensor.scalar_type()), std::monostate{},
                 std::monostate{}, std::monostate{}};
  scalar.phase = phase;
  scalar.module = module;
  scalar.source = source;
  Value value;
  value.type = *toDType(tensor.scalar_type());
  value.producer = static_cast<OpId>(graph.ops.size());
  ValueId id = addValue(std::move(value));
  scalar.results = {id};
  graph.ops.push_back(std::move(scalar));
  if (phase == Phase::Backward && onBackwardOp)
    onBackwardOp(static_cast<OpId>(graph.ops.size() - 1));
  return OperandArg{addOperand(op, id)};
}

Arg Recorder::tensorArg(Call &call, const at::Tensor &tensor,
                        at::Tensor &meta) {
  if (const RecordedTensor *recorded = RecordedTensor::of(tensor)) {
    meta = recorded->meta;
    return OperandArg{addOperand(call.op, recorded->id)};
  }
  meta = at::empty_strided(tensor.sizes(), tensor.strides(),
                           tensor.options().device(c10::kMeta));
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number())
    meta.unsafeGetTensorImpl()->set_wrapped_number(true);
  return constantArg(call.op, tensor);
}

Arg Recorder::convert(Call &call, const c10::Argument &argument,
                      IValue &value) {
  c10::TypePtr type = withoutOptional(argument.real_type());
  if (value.isTensor()) {
    at::Tensor tensor = value.toTensor(), meta;
    if (!tensor.defined())
      return std::monostate{};
    Arg arg = tensorArg(call, tensor, meta);
    value = meta;
    return arg;
  }
  if (value.isList() && isTensorList(type)) {
    OperandListArg list;
    std::vector<std::optional<at::Tensor>> metas;
    for (const IValue &element : value.toListRef()) {
      at::Tensor meta;
      if (!element.isTensor() || !element.toTensor().defined()) {
        list.indices.push_back(None);
        metas.push_back(std::nullopt);
        continue;
      }
      Arg arg = tensorArg(call, element.toTensor(), meta);
      const auto *operand = std::get_if<OperandArg>(&arg);
      if (operand == nullptr)
        throw CaptureFailure(
            unsupported(*this, call.op.name + " takes a list with a number"));
      list.indices.push_back(operand->index);
      metas.push_back(meta);
    }
    bool isOptional =
        type->castRaw<c10::ListType>()->getElementType()->kind() ==
        TypeKind::OptionalType;
    if (isOptional) {
      value = c10::List<std::optional<at::Tensor>>(metas);
    } else {
      c10::List<at::Tensor> plain;
      for (const auto &meta : metas)
        plain.push_back(*meta);
      value = plain;
    }
    return list;
  }
  if (value.isNone() || value.isDevice() || value.isGenerator() ||
      type->kind() == TypeKind::LayoutType || argument.name() == "pin_memory")
    return std::monostate{};
  if (type->kind() == TypeKind::ScalarTypeType) {
    if (auto dtype = toDType(static_cast<at::ScalarType>(value.toInt())))
      return *dtype;
    throw CaptureFailure(
        unsupported(*this, call.op.name + " makes a type that is not known"));
  }
  if (type->kind() == TypeKind::MemoryFormatType)
    return memoryFormatName(value.toInt());
  if (value.isBool())
    return value.toBool();
  if (value.isInt())
    return value.toInt();
  if (value.isSymInt())
    return value.toSymInt().guard_int(__FILE__, __LINE__);
  if (value.isDouble())
    return value.toDouble();
  if (value.isString())
    return value.toStringRef();
  if (value.isBoolList()) {
    std::vector<bool> list;
    for (bool element : value.toBoolList())
      list.push_back(element);
    return list;
  }
  if (value.isDoubleList())
    return value.toDoubleVector();
  if (value.isList() &&
      (value.isIntList() || value.isSymIntList() || value.toListRef().empty()))
    return intList(value);
  throw CaptureFailure(
      unsupported(*this, fmt::format("{} has an argument '{}' of a type that "
                                     "cannot be recorded",
                                     call.op.name, argument.name())));
}

at::Tensor Recorder::addResult(Op &op, const at::Tensor &meta) {
  if (!meta.defined()) {
    op.results.push_back(None);
    return meta;
  }
  auto type = toDType(meta.scalar_type());
  if (!type)
    throw CaptureFailure(
        unsupported(*this, op.name + " makes a type that is not known"));
  Value value;
  value.type = *type;
  value.shape = meta.sizes().vec();
  value.producer = static_cast<OpId>(graph.ops.size());
  value.result = static_cast<int>(op.results.size());
  ValueId id = addValue(std::move(value));
  op.results.push_back(id);
  return RecordedTensor::wrap(meta, id);
}

void Recorder::record(const c10::OperatorHandle &handle,
                      torch::jit::Stack &stack) {
  c10::impl::ExcludeDispatchKeyGuard notAgain{
      DispatchKeySet(DispatchKey::Fake)};
  const c10::FunctionSchema &schema = handle.schema();
  const std::string name = c10::toString(schema.operator_name());
  const size_t count = schema.arguments().size();

  bool isRecorded = false, isMeta = false, isReal = false;
  for (size_t i = 0; i < count; ++i)
    eachTensor(stack[stack.size() - count + i], [&](const at::Tensor &t) {
      if (!t.defined())
        return;
      bool recorded = RecordedTensor::of(t) != nullptr;
      isRecorded |= recorded;
      isMeta |= !recorded && t.is_meta();
      isReal |= !recorded && !t.is_meta();
    });
  if ((isReal && !isRecorded && !isMeta) || name == "aten::scalar_tensor") {
    useDevice(schema, stack, c10::kCPU);
    at::AutoDispatchSkipFunctionalize direct;
    at::AutoDispatchBelowAutograd below;
    handle.callBoxed(stack);
    return;
  }
  useDevice(schema, stack, c10::kMeta);
  if (isMeta && !isRecorded) { // functionalisation asks for a shape
    askShape(handle, stack);
    return;
  }
  if (name == "aten::_local_scalar_dense" || name == "aten::item")
    throw CaptureFailure(unsupported(
        *this, "the model's path depends on the data of a tensor (item())"));
  if (schema.is_mutable())
    throw CaptureFailure(unsupported(
        *this, name + " writes in place and has no functional form"));

  Call call;
  call.op.name = name;
  for (size_t i = 0; i < count; ++i) {
    IValue value = stack[stack.size() - count + i];
    call.op.args.push_back(convert(call, schema.arguments()[i], value));
    call.meta.push_back(std::move(value));
  }
  call.op.phase = phase;
  call.op.module = module;
  call.op.source = source;
  torch::jit::drop(stack, count);
  const size_t base = stack.size();
  if (ShapeRule rule = shapeRuleOf(name)) {
    rule(call.meta, stack);
  } else {
    try {
      stack.insert(stack.end(), call.meta.begin(), call.meta.end());
      handle.redispatchBoxed(DispatchKeySet(DispatchKey::Meta), &stack);
    } catch (const c10::Error &error) {
      torch::jit::drop(stack, stack.size() - base);
      if (!shapesFromZeros(handle, call.meta, stack))
        throw CaptureFailure(
            unsupported(*this, fmt::format("the shape of {} is not known: {}",
                                           name, firstLine(error))));
    }
  }
  for (size_t i = base; i < stack.size(); ++i) {
    IValue &value = stack[i];
    if (value.isTensor()) {
      value = addResult(call.op, value.toTensor());
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor &element : value.toTensorVector())
        list.push_back(addResult(call.op, element));
      value = list;
    }
  }
  graph.ops.push_back(std::move(call.op));
  if (phase == Phase::Backward && onBackwardOp)
    onBackwardOp(static_cast<OpId>(graph.ops.size() - 1));
}

namespace {

/// Each op by name, not a fallback of the key: it wins over any kernel that
/// LibTorch has or gets there. Once for the process, never taken back: there
/// are thousands, and they run only where a recorded tensor or a scope brings
/// the key.
void registerKernels() {
  [[maybe_unused]] static const auto *kernels = [] {
    auto *registered = new std::vector<c10::RegistrationHandleRAII>;
    auto &dispatcher = c10::Dispatcher::singleton();
    for (const c10::OperatorName &name : dispatcher.getAllOpNames())
      if (dispatcher.findSchema(name))
        registered->push_back(dispatcher.registerImpl(
            name, DispatchKey::Fake,
            c10::KernelFunction::makeFromBoxedFunction<&recordKernel>(),
            std::nullopt, nullptr, "recorder"));
    return registered;
  }();
}

} // namespace

struct RecordingScope::State {
  c10::impl::IncludeDispatchKeyGuard include{Recording};
  bool reappliedViews =
      functionalization::getFunctionalizationReapplyViewsTLS();
};

RecordingScope::RecordingScope(Recorder &recorder)
    : state(std::make_unique<State>()) {
  TORCH_CHECK(current == nullptr, "a recording is under way");
  current = &recorder;
  registerOps();
  registerKernels();
  functionalization::setFunctionalizationReapplyViewsTLS(true);
}

RecordingScope::~RecordingScope() {
  functionalization::setFunctionalizationReapplyViewsTLS(state->reappliedViews);
  current = nullptr;
}

} // namespace monarch
