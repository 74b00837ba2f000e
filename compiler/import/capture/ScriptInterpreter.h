//===- ScriptInterpreter.h - runs a TorchScript program -------------------===//
//
// Walks the graphs of its functions node by node, each op through LibTorch's
// dispatcher, so that the recorder knows the module and line of each. Loops and
// branches over numbers run; over tensors' data they are errors. The module's
// objects are never written to: attributes that change live here.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/import/capture/Interpreter.h"
#include "runtime/script/ScriptFile.h"

namespace monarch {

/// A tensor of what `forward` returns, in order; undefined for other results.
struct ScriptOutput {
  /// A key of the mapping or a field of the named tuple, or "".
  std::string name;
  at::Tensor tensor;
};

class ScriptInterpreter {
public:
  ScriptInterpreter(Recorder &recorder, const ScriptFile &script,
                    bool promoteToFloat64)
      : recorder(recorder), script(script), promote(promoteToFloat64) {}

  /// `values`: leaves by placeholder; tensors that the program put in their
  /// place replace them. Throws CaptureFailure, and what LibTorch throws.
  std::vector<ScriptOutput> run(Interpreter::Values &values);

private:
  using IValue = c10::IValue;
  using Node = torch::jit::Node;
  using Frame = std::unordered_map<const torch::jit::Value *, IValue>;

  IValue call(torch::jit::Function &function, std::vector<IValue> arguments);
  IValue callMethod(const IValue &object, const std::string &name,
                    std::vector<IValue> rest);
  void runBlock(const torch::jit::Block &block, Frame &frame);
  void runLoop(const Node &node, Frame &frame);
  void runNode(const Node &node, Frame &frame);
  /// False: not one of those that move values.
  bool runStructure(const Node &node, Frame &frame);
  bool runCall(const Node &node, Frame &frame);
  void runOp(const Node &node, Frame &frame);
  void fit(const c10::FunctionSchema &schema, torch::jit::Stack &stack) const;
  IValue constant(const Node &node);
  IValue &attribute(const Node &node, Frame &frame);
  std::vector<IValue> inputsOf(const Node &node, const Frame &frame) const;
  [[noreturn]] void fail(const Node &node, std::string what) const;

  Recorder &recorder;
  const ScriptFile &script;
  const bool promote;
  std::map<std::pair<const c10::ivalue::Object *, size_t>, IValue> attributes;
  std::unordered_map<const Node *, IValue> constants;
  std::unordered_map<const Node *, torch::jit::Operation> operations;
  /// Tensors in the code, as leaves.
  std::unordered_map<const c10::StorageImpl *,
                     std::vector<std::pair<const ScriptTensor *, IValue>>>
      tensorsInCode;
  size_t depth = 0;
  int64_t steps = 0;
};

} // namespace monarch
