//===- RecordedTensor.h - a tensor without data that knows its value ------===//
//
// A meta tensor under a value of the graph. It says that its device is the CPU,
// so that autograd, autocast and composite ops take the paths of a real model;
// below autograd the key Fake sends each op to the recorder. It shares the meta
// tensor's storage, so aliasing is seen. Saved variables copy the impl without
// dispatching: the value's id travels inside it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/graph/Graph.h"

#include <ATen/core/Tensor.h>

namespace monarch {

class RecordedTensor final : public c10::TensorImpl {
public:
  RecordedTensor(at::Tensor meta, ValueId id);

  static at::Tensor wrap(at::Tensor meta, ValueId id);
  /// Null for other tensors.
  static const RecordedTensor *of(const at::Tensor &tensor);

  c10::intrusive_ptr<c10::TensorImpl>
  shallow_copy_and_detach(const c10::VariableVersion &version,
                          bool allowChange) const override;
  c10::intrusive_ptr<c10::TensorImpl>
  shallow_copy_and_detach(c10::VariableVersion &&version,
                          bool allowChange) const override;

  const at::Tensor meta;
  const ValueId id;
};

at::ScalarType toScalarType(DType type);
/// nullopt for types that the project does not know (complex, quantised).
std::optional<DType> toDType(at::ScalarType type);

} // namespace monarch
