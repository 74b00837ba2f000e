//===- BoxedCall.cpp - one ATen call, resolved once -----------------------===//
//
// See BoxedCall.h. The only file of the executor that reads the dispatcher's
// headers.
//
//===----------------------------------------------------------------------===//
#include "runtime/exec/BoxedCall.h"

#include "runtime/support/Tensors.h"

#include <ATen/ScalarOps.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <fmt/format.h>

namespace monarch::runtime {

namespace {

/// Thrown while arguments are converted; never leaves `resolve`.
struct Mismatch {
  std::string what;
};

struct Slot {
  size_t argument;
  std::vector<int> operands;
  bool isList = false;
  bool isOptionalElement = false;
};

bool isKind(const c10::TypePtr &type, c10::TypeKind kind) {
  return type->kind() == kind;
}

/// T of T? and T itself.
c10::TypePtr withoutOptional(const c10::TypePtr &type) {
  if (auto optional = type->cast<c10::OptionalType>())
    return optional->getElementType();
  return type;
}

/// Where a tensor is wanted, a number stands for a scalar that gives way to the
/// types of the real operands.
c10::IValue wrappedNumber(const c10::Scalar &value) {
  at::Tensor tensor = c10::scalar_to_tensor(value);
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

c10::IValue numberFor(const c10::TypePtr &type, int64_t value) {
  if (isKind(type, c10::TypeKind::TensorType))
    return wrappedNumber(value);
  if (isKind(type, c10::TypeKind::FloatType))
    return static_cast<double>(value);
  if (isKind(type, c10::TypeKind::BoolType))
    return value != 0;
  return value;
}

struct Converter {
  const RankView &view;
  c10::TypePtr type;

  c10::IValue operator()(std::monostate) const { return {}; }
  c10::IValue operator()(const OperandArg &) const { return {}; }
  c10::IValue operator()(const OperandListArg &) const { return {}; }
  c10::IValue operator()(bool value) const { return value; }
  c10::IValue operator()(const Expr &value) const {
    return numberFor(type, view.evaluate(value));
  }
  c10::IValue operator()(double value) const {
    if (isKind(type, c10::TypeKind::TensorType))
      return wrappedNumber(value);
    return value;
  }
  c10::IValue operator()(DType value) const {
    return static_cast<int64_t>(scalarTypeOf(value));
  }
  c10::IValue operator()(const std::vector<double> &value) const {
    return value;
  }
  c10::IValue operator()(const std::vector<bool> &value) const {
    c10::List<bool> list;
    for (bool element : value)
      list.push_back(element);
    return list;
  }
  c10::IValue operator()(const std::vector<Expr> &value) const {
    std::vector<int64_t> values = view.evaluate(value);
    auto list = type->cast<c10::ListType>();
    if (list && isKind(list->getElementType(), c10::TypeKind::FloatType))
      return std::vector<double>(values.begin(), values.end());
    return values;
  }
  c10::IValue operator()(const std::string &value) const {
    if (isKind(type, c10::TypeKind::DeviceObjType))
      return c10::Device(value);
    return value;
  }
};

} // namespace

struct BoxedCall::Resolved {
  c10::OperatorHandle handle;
  std::vector<c10::IValue> arguments;
  std::vector<Slot> slots;
};

BoxedCall::BoxedCall(std::unique_ptr<Resolved> resolved)
    : resolved(std::move(resolved)) {}
BoxedCall::BoxedCall(BoxedCall &&other) noexcept = default;
BoxedCall &BoxedCall::operator=(BoxedCall &&other) noexcept = default;
BoxedCall::~BoxedCall() = default;

Expected<BoxedCall> BoxedCall::resolve(const Instruction &instruction,
                                       const RankView &view) {
  auto fail = [&](const std::string &what) {
    return Error{"MP4004", ExitCode::BadInput,
                 fmt::format("cannot call {}: {}", instruction.name, what), "",
                 "compile the program again with this version"};
  };
  size_t dot = instruction.name.find('.');
  std::string base = instruction.name.substr(0, dot);
  std::string overload =
      dot == std::string::npos ? "" : instruction.name.substr(dot + 1);
  auto handle =
      c10::Dispatcher::singleton().findSchema({base.c_str(), overload.c_str()});
  if (!handle) {
    Error error = fail("LibTorch has no such op");
    if (!base.starts_with("aten::") && !base.starts_with("monarch::"))
      error.fix = "bring the library that has it: --library FILE.so";
    return error;
  }

  const auto &schema = handle->schema().arguments();
  if (instruction.args.size() > schema.size())
    return fail(fmt::format("{} arguments, its schema has {}",
                            instruction.args.size(), schema.size()));
  auto resolved = std::make_unique<Resolved>(
      Resolved{*handle, std::vector<c10::IValue>(schema.size()), {}});
  auto checkOperand = [&](int index) {
    if (index >= static_cast<int>(instruction.operands.size()))
      throw Mismatch{fmt::format("operand {} is missing", index)};
  };
  try {
    for (size_t i = 0; i < schema.size(); ++i) {
      CallArg none;
      const CallArg &arg =
          i < instruction.args.size() ? instruction.args[i] : none;
      c10::TypePtr type = withoutOptional(schema[i].real_type());
      if (auto *operand = std::get_if<OperandArg>(&arg)) {
        checkOperand(operand->index);
        resolved->slots.push_back({i, {operand->index}});
      } else if (auto *list = std::get_if<OperandListArg>(&arg)) {
        for (int index : list->indices)
          checkOperand(index);
        auto element = type->cast<c10::ListType>();
        if (!element)
          throw Mismatch{fmt::format("'{}' is no list", schema[i].name())};
        resolved->slots.push_back(
            {i, list->indices, true,
             isKind(element->getElementType(), c10::TypeKind::OptionalType)});
      } else {
        c10::IValue value = std::visit(Converter{view, type}, arg);
        if (value.isNone() && schema[i].default_value())
          value = *schema[i].default_value();
        if (value.isNone() &&
            !isKind(schema[i].real_type(), c10::TypeKind::OptionalType))
          throw Mismatch{fmt::format("'{}' has no value", schema[i].name())};
        resolved->arguments[i] = std::move(value);
      }
    }
  } catch (const Mismatch &mismatch) {
    return fail(mismatch.what);
  } catch (const std::exception &exception) {
    return fail(messageOf(exception));
  }
  return BoxedCall(std::move(resolved));
}

std::vector<at::Tensor>
BoxedCall::run(const std::vector<at::Tensor> &operands) const {
  std::vector<c10::IValue> stack = resolved->arguments;
  for (const Slot &slot : resolved->slots) {
    if (!slot.isList) {
      stack[slot.argument] = operands[slot.operands[0]];
    } else if (slot.isOptionalElement) {
      c10::List<std::optional<at::Tensor>> list;
      for (int index : slot.operands)
        list.push_back(index == None ? std::nullopt
                                     : std::optional(operands[index]));
      stack[slot.argument] = std::move(list);
    } else {
      c10::List<at::Tensor> list;
      for (int index : slot.operands)
        list.push_back(operands[index]);
      stack[slot.argument] = std::move(list);
    }
  }
  resolved->handle.callBoxed(stack);
  std::vector<at::Tensor> results;
  for (c10::IValue &value : stack) {
    if (value.isTensor())
      results.push_back(std::move(value).toTensor());
    else if (value.isTensorList())
      for (at::Tensor tensor : value.toTensorVector())
        results.push_back(std::move(tensor));
    else
      results.emplace_back();
  }
  return results;
}

} // namespace monarch::runtime
