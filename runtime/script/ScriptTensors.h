//===- ScriptTensors.h - tensors that a TorchScript module holds ----------===//
//
// By attribute path, each checked to lie inside its record.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/script/ScriptFile.h"

namespace monarch {

/// The record that a storage maps.
using StorageRecords = std::map<const c10::StorageImpl *, std::string>;

class ScriptTensorError : public std::exception {
public:
  explicit ScriptTensorError(Error error) : error(std::move(error)) {}
  const char *what() const noexcept override { return error.what.c_str(); }
  const Error error;
};

class ScriptTensors {
public:
  ScriptTensors(const std::string &path, const StorageRecords &records)
      : path(path), records(records) {}

  std::vector<ScriptTensor> constants(const std::vector<c10::IValue> &table);
  void collect(const torch::jit::Module &root, std::vector<ScriptTensor> &held,
               std::map<const c10::ivalue::Object *, std::string> &paths);

private:
  void walk(const c10::ivalue::Object &object, const std::string &prefix);
  ScriptTensor checked(const at::Tensor &tensor, const std::string &name) const;
  void add(ScriptTensor tensor);
  [[noreturn]] void fail(const std::string &name, std::string what) const;

  const std::string &path;
  const StorageRecords &records;
  std::vector<ScriptTensor> *into = nullptr;
  std::map<const c10::ivalue::Object *, std::string> *objects = nullptr;
  size_t depth = 0;
  size_t visited = 0;
};

std::optional<DType> dtypeOfTensor(at::ScalarType type);
/// An exception's text up to its first line's end.
std::string firstLineOf(const std::string &text);

} // namespace monarch
