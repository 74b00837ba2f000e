//===- ScriptFile.h - a TorchScript archive, inspected, then loaded -------===//
//
// A TorchScript file is a program. It is read by LibTorch's own parts, in this
// order: the sizes of its records are checked; its classes are compiled, which
// runs nothing; objects that would run code when they are made are refused;
// every op of every function is checked against what a model may do. Nothing of
// the file runs here. Weights are views of the mapped file: no record is read
// because it exists.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/graph/Graph.h"

#include <map>
#include <memory>
#include <optional>

#include <torch/csrc/jit/api/module.h>

namespace monarch {

/// Parameters that share storage, offset and strides are one.
struct ScriptTensor {
  /// Attribute paths: "blocks.0.norm.weight".
  std::vector<std::string> names;
  at::Tensor tensor;
  ValueKind kind = ValueKind::Constant;
  Storage storage;
  /// The attributes that hold it.
  std::vector<std::pair<const c10::ivalue::Object *, size_t>> places;
};

struct ScriptInput {
  DType type = DType::Float32;
  std::vector<int64_t> shape;
};

class ScriptFile {
public:
  static Expected<std::shared_ptr<const ScriptFile>>
  open(const std::string &path);

  torch::jit::Module module() const { return root; }
  const std::vector<ScriptTensor> &tensors() const { return held; }
  /// Tensors that stand in the code: CONSTANTS.c0, c1, ...
  const std::vector<ScriptTensor> &constants() const { return inCode; }
  /// The attribute path of a module object; null for other objects.
  const std::string *pathOf(const c10::ivalue::Object *object) const;
  /// What the model was traced with; empty where it was scripted.
  const std::vector<ScriptInput> &tracedInputs() const { return traced; }
  /// "model.py:12"; "" where the file does not say.
  std::string sourceOf(const torch::jit::Node &node) const;
  int64_t weightBytes() const { return recordBytes; }
  int64_t nodeCount() const { return nodes; }

private:
  friend class ScriptLoader;

  torch::jit::Module root;
  std::vector<ScriptTensor> held;
  std::vector<ScriptTensor> inCode;
  std::map<const c10::ivalue::Object *, std::string> paths;
  std::vector<ScriptInput> traced;
  /// Code file -> (offset in it, line of the user's source), sorted.
  std::map<std::string, std::vector<std::pair<size_t, std::string>>> lines;
  int64_t recordBytes = 0;
  int64_t nodes = 0;
};

} // namespace monarch
