//===- Interpreter.h - runs an exported program ---------------------------===//
//
// Nodes in order, each through LibTorch's dispatcher, over named values. Sizes
// are plain integers: the caller has given each symbol a value. Graphs that
// switch gradients or autocast for a while are run in place.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/import/capture/Capture.h"
#include "compiler/import/capture/Recorder.h"

#include <unordered_map>

namespace monarch {

/// Throws: this node cannot be captured.
[[noreturn]] void failAt(const ExportedNode &node, std::string what);
/// Throws where nothing made it.
const c10::IValue &
lookUp(const std::unordered_map<std::string, c10::IValue> &values,
       const std::string &name);

class Interpreter {
public:
  using Values = std::unordered_map<std::string, c10::IValue>;

  Interpreter(Recorder &recorder, const SymbolValues &symbols,
              bool promoteToFloat64)
      : recorder(recorder), symbols(symbols), promote(promoteToFloat64) {}

  /// Throws CaptureFailure, and what LibTorch throws.
  void run(const ExportedGraph &graph, Values &values);
  DType promoted(DType type) const;

private:
  void runNode(const ExportedGraph &graph, const ExportedNode &node,
               Values &values);
  void runOp(const ExportedGraph &graph, const ExportedNode &node,
             Values &values);
  void runOpaque(const ExportedGraph &graph, const ExportedNode &node,
                 const std::string &name, Values &values);
  void runHigherOrder(const ExportedNode &node, Values &values);
  std::vector<c10::IValue> operandsFrom(const ExportedNode &node, size_t first,
                                        const Values &values) const;
  std::vector<c10::IValue> runBody(const ExportedNode &node,
                                   const ExportedGraph &body,
                                   const std::vector<c10::IValue> &operands);
  std::vector<c10::IValue>
  runBranches(const ExportedNode &node,
              const std::vector<std::shared_ptr<ExportedGraph>> &branches,
              const std::vector<c10::IValue> &operands,
              const c10::IValue &condition);
  /// Real numbers that an op of the program made.
  bool isComputed(const c10::IValue &value) const;
  c10::IValue runSymbolic(const ExportedNode &node, const Values &values) const;
  c10::IValue convert(const ExportedArgument &argument, const Values &values,
                      const c10::TypePtr &type) const;
  void bind(const ExportedNode &node, const std::vector<c10::IValue> &results,
            Values &values) const;
  void checkShape(const ExportedGraph &graph, const std::string &name,
                  const at::Tensor &tensor) const;

  Recorder &recorder;
  const SymbolValues &symbols;
  const bool promote;
};

} // namespace monarch
