//===- TensorFiles.h - tensors as safetensors, for tests ------------------===//
#pragma once

#include "core/support/Safetensors.h"
#include "runtime/support/Tensors.h"

#include <stdexcept>

namespace monarch::test {

/// Throws what goes wrong: Catch's macros would meet those of LibTorch here.
inline void writeTensors(const std::string &path,
                         const std::map<std::string, at::Tensor> &tensors) {
  const auto require = [](const std::optional<Error> &error) {
    if (error)
      throw std::runtime_error(toString(*error));
  };
  std::vector<SafetensorsTensor> declared;
  for (const auto &[name, tensor] : tensors)
    declared.push_back({name, *runtime::dtypeOf(tensor.scalar_type()),
                        tensor.sizes().vec(), 0, 0});
  auto writer = SafetensorsWriter::create(path, declared);
  require(writer ? std::nullopt : std::optional(writer.error()));
  for (const auto &[name, tensor] : tensors)
    require(writer->write(name, 0, tensor.const_data_ptr(),
                          static_cast<int64_t>(tensor.nbytes())));
  require(writer->commit());
}

} // namespace monarch::test
