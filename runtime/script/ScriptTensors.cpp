//===- ScriptTensors.cpp - attributes, names, bounds ----------------------===//
#include "runtime/script/ScriptTensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace monarch {

namespace {

/// A pickle can make objects that hold each other.
constexpr size_t DepthLimit = 200;
constexpr size_t VisitLimit = 1'000'000;

bool holdsTensor(const c10::IValue &value) {
  if (value.isTensor())
    return value.toTensor().defined();
  if (value.isList())
    return std::any_of(value.toListRef().begin(), value.toListRef().end(),
                       holdsTensor);
  if (value.isTuple())
    return std::any_of(value.toTupleRef().elements().begin(),
                       value.toTupleRef().elements().end(), holdsTensor);
  if (value.isGenericDict())
    for (const auto &entry : value.toGenericDict())
      if (holdsTensor(entry.key()) || holdsTensor(entry.value()))
        return true;
  return false;
}

bool isSameMemory(const ScriptTensor &a, const ScriptTensor &b) {
  return a.kind == b.kind && !a.storage.record.empty() &&
         a.storage.record == b.storage.record &&
         a.storage.offsetBytes == b.storage.offsetBytes &&
         a.tensor.sizes() == b.tensor.sizes() &&
         a.tensor.strides() == b.tensor.strides() &&
         a.tensor.scalar_type() == b.tensor.scalar_type();
}

} // namespace

std::optional<DType> dtypeOfTensor(at::ScalarType type) {
  constexpr std::array<at::ScalarType, 10> Types = {
      at::kBool, at::kByte, at::kChar,     at::kShort, at::kInt,
      at::kLong, at::kHalf, at::kBFloat16, at::kFloat, at::kDouble};
  const auto found = std::find(Types.begin(), Types.end(), type);
  if (found == Types.end())
    return std::nullopt;
  return static_cast<DType>(found - Types.begin());
}

std::string firstLineOf(const std::string &text) {
  const size_t begin = std::min(text.find_first_not_of(" \n"), text.size());
  return text.substr(begin, text.find('\n', begin) - begin);
}

void ScriptTensors::fail(const std::string &name, std::string what) const {
  throw ScriptTensorError({"MP1031", ExitCode::BadInput,
                           fmt::format("tensor '{}' {}", name, what), path,
                           "save the model again with torch.jit.save"});
}

ScriptTensor ScriptTensors::checked(const at::Tensor &tensor,
                                    const std::string &name) const {
  if (tensor.layout() != at::kStrided || tensor.is_quantized() ||
      !dtypeOfTensor(tensor.scalar_type()))
    fail(name, "has an element type or a layout that is not supported");
  const auto width = static_cast<int64_t>(tensor.itemsize());
  int64_t extent = 1, offset = tensor.storage_offset();
  bool isOutside = offset < 0, isEmpty = false;
  for (int64_t dim = 0; dim < tensor.dim(); ++dim) {
    int64_t reach = 0;
    isOutside |= tensor.size(dim) < 0 || tensor.stride(dim) < 0;
    isEmpty |= tensor.size(dim) == 0;
    isOutside |= __builtin_mul_overflow(tensor.size(dim) - 1,
                                        tensor.stride(dim), &reach) ||
                 __builtin_add_overflow(extent, reach, &extent);
  }
  isOutside |= __builtin_add_overflow(extent, offset, &extent) ||
               __builtin_mul_overflow(extent, width, &extent);
  const c10::Storage &storage = tensor.storage();
  if (!isEmpty &&
      (isOutside || extent > static_cast<int64_t>(storage.nbytes())))
    fail(name, "reaches beyond its record");
  if (!isEmpty &&
      reinterpret_cast<uintptr_t>(storage.data()) % tensor.itemsize() != 0)
    fail(name, "lies at an odd place in the file");
  ScriptTensor result;
  result.names = {name};
  result.tensor = tensor;
  if (auto found = records.find(storage.unsafeGetStorageImpl());
      found != records.end() && !isEmpty)
    result.storage = {found->second, offset * width, tensor.strides().vec()};
  return result;
}

std::vector<ScriptTensor>
ScriptTensors::constants(const std::vector<c10::IValue> &table) {
  std::vector<ScriptTensor> tensors;
  for (size_t i = 0; i < table.size(); ++i) {
    const std::string name = fmt::format("CONSTANTS.c{}", i);
    if (table[i].isTensor())
      tensors.push_back(checked(table[i].toTensor(), name));
    else if (holdsTensor(table[i]) || table[i].isObject())
      fail(name, "is inside another value");
  }
  return tensors;
}

void ScriptTensors::add(ScriptTensor tensor) {
  for (ScriptTensor &known : *into)
    if (known.tensor.unsafeGetTensorImpl() ==
            tensor.tensor.unsafeGetTensorImpl() ||
        (known.kind == ValueKind::Parameter && isSameMemory(known, tensor))) {
      known.names.push_back(tensor.names.front());
      known.places.push_back(tensor.places.front());
      return;
    }
  into->push_back(std::move(tensor));
}

void ScriptTensors::walk(const c10::ivalue::Object &object,
                         const std::string &prefix) {
  if (++visited > VisitLimit || depth > DepthLimit)
    fail(prefix, "lies too deep");
  ++depth;
  objects->emplace(&object,
                   prefix.empty() ? "" : prefix.substr(0, prefix.size() - 1));
  const auto type = object.type();
  for (size_t slot = 0; slot < type->numAttributes(); ++slot) {
    const c10::IValue &value = object.getSlot(slot);
    const std::string name = prefix + type->getAttributeName(slot);
    if (value.isTensor()) {
      if (!value.toTensor().defined())
        continue;
      ScriptTensor tensor = checked(value.toTensor(), name);
      tensor.kind = type->is_parameter(slot) ? ValueKind::Parameter
                    : type->is_buffer(slot)  ? ValueKind::Buffer
                                             : ValueKind::Constant;
      tensor.places = {{&object, slot}};
      add(std::move(tensor));
    } else if (value.isObject()) {
      const auto inner = value.toObject();
      if (inner->type()->is_module())
        walk(*inner, name + ".");
      else if (inner->type()->numAttributes() > 0)
        fail(name, "is an object of class " + inner->type()->repr_str() +
                       ", which is no module");
    } else if (holdsTensor(value)) {
      fail(name, "is a list or mapping of tensors; make them buffers");
    }
  }
  --depth;
}

void ScriptTensors::collect(
    const torch::jit::Module &root, std::vector<ScriptTensor> &held,
    std::map<const c10::ivalue::Object *, std::string> &paths) {
  into = &held;
  objects = &paths;
  walk(*root._ivalue(), "");
}

} // namespace monarch
