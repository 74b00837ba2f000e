//===- TensorFiles.h - tensors as safetensors, for tests ------------------===//
#pragma once

#include "core/support/Safetensors.h"
#include "runtime/support/Tensors.h"

#include <catch2/catch.hpp>

namespace monarch::test {

inline void writeTensors(const std::string &path,
                         const std::map<std::string, at::Tensor> &tensors) {
  std::vector<SafetensorsTensor> declared;
  for (const auto &[name, tensor] : tensors)
    declared.push_back({name, *runtime::dtypeOf(tensor.scalar_type()),
                        tensor.sizes().vec(), 0, 0});
  auto writer = SafetensorsWriter::create(path, declared);
  REQUIRE(writer);
  for (const auto &[name, tensor] : tensors)
    REQUIRE(!writer->write(name, 0, tensor.const_data_ptr(),
                           static_cast<int64_t>(tensor.nbytes())));
  REQUIRE(!writer->commit());
}

} // namespace monarch::test
