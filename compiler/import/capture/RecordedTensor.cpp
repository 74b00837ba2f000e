//===- RecordedTensor.cpp - keys, metadata and copies ---------------------===//
//
// The dispatch keys are those of a CPU tensor, and Fake.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/capture/RecordedTensor.h"

#include <array>

namespace monarch {

namespace {

const c10::DispatchKeySet Keys({c10::DispatchKey::CPU, c10::DispatchKey::Fake,
                                c10::DispatchKey::AutogradCPU,
                                c10::DispatchKey::ADInplaceOrView,
                                c10::DispatchKey::AutocastCPU});

/// In the order of DType.
constexpr std::array<at::ScalarType, 14> ScalarTypes = {
    at::kBool,         at::kByte,         at::kChar,          at::kShort,
    at::kInt,          at::kLong,         at::kHalf,          at::kBFloat16,
    at::kFloat,        at::kDouble,       at::kFloat8_e4m3fn, at::kFloat8_e5m2,
    at::kComplexFloat, at::kComplexDouble};
static_assert(ScalarTypes.size() == static_cast<size_t>(LastDType) + 1);

} // namespace

RecordedTensor::RecordedTensor(at::Tensor metaTensor, ValueId id)
    : TensorImpl(Keys, metaTensor.dtype(), c10::Device(c10::kCPU)),
      meta(std::move(metaTensor)), id(id) {
  storage_ = meta.storage();
  set_sizes_and_strides(meta.sizes(), meta.strides(), meta.storage_offset());
  if (meta.unsafeGetTensorImpl()->is_wrapped_number())
    set_wrapped_number(true);
}

at::Tensor RecordedTensor::wrap(at::Tensor meta, ValueId id) {
  return at::Tensor(c10::make_intrusive<RecordedTensor>(std::move(meta), id));
}

const RecordedTensor *RecordedTensor::of(const at::Tensor &tensor) {
  return tensor.defined() ? dynamic_cast<const RecordedTensor *>(
                                tensor.unsafeGetTensorImpl())
                          : nullptr;
}

c10::intrusive_ptr<c10::TensorImpl>
RecordedTensor::shallow_copy_and_detach(const c10::VariableVersion &version,
                                        bool allowChange) const {
  auto copy = c10::make_intrusive<RecordedTensor>(meta, id);
  copy->set_version_counter(version);
  copy->set_allow_tensor_metadata_change(allowChange);
  return copy;
}

c10::intrusive_ptr<c10::TensorImpl>
RecordedTensor::shallow_copy_and_detach(c10::VariableVersion &&version,
                                        bool allowChange) const {
  auto copy = c10::make_intrusive<RecordedTensor>(meta, id);
  copy->set_version_counter(std::move(version));
  copy->set_allow_tensor_metadata_change(allowChange);
  return copy;
}

at::ScalarType toScalarType(DType type) {
  return ScalarTypes[static_cast<size_t>(type)];
}

std::optional<DType> toDType(at::ScalarType type) {
  for (size_t i = 0; i < ScalarTypes.size(); ++i)
    if (ScalarTypes[i] == type)
      return static_cast<DType>(i);
  return std::nullopt;
}

} // namespace monarch
