//===- ExportedProgram.h - what torch.export wrote, as plain data ---------===//
//
// The model of a .pt2 file before capture: nodes over named tensors and
// symbolic sizes. Parameters that share storage are one leaf with several
// names. No weights, no LibTorch.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/import/capture/SizeExpression.h"
#include "core/graph/Graph.h"

#include <map>
#include <memory>

namespace monarch {

/// A size of a tensor in the file. With symbols it is the value that the export
/// was run with.
struct ExportedSize {
  int64_t hint = 0;
  std::vector<std::string> symbols;
  /// Of symbols (SizeExpression.h); "" without.
  std::string expression = {};
  bool operator==(const ExportedSize &) const = default;
};
/// nullopt where a symbol has no value, or the expression is not known.
std::optional<int64_t> evaluate(const ExportedSize &size,
                                const SymbolValues &symbols);

struct ExportedTensor {
  DType type = DType::Float32;
  std::vector<ExportedSize> sizes;
  bool requiresGrad = false;
};

/// A tensor by name; "" where an optional one is absent.
struct TensorName {
  std::string name;
};
/// An integer, float or bool computed from sizes, by name.
struct SymbolName {
  std::string name;
};
using ExportedInt = std::variant<int64_t, SymbolName>;
enum class MemoryFormat : uint8_t {
  Contiguous,
  ChannelsLast,
  ChannelsLast3d,
  Preserve
};
struct DeviceArgument {};
struct LayoutArgument {};
struct ExportedGraph;

using ExportedArgument =
    std::variant<std::monostate, TensorName, std::vector<TensorName>,
                 SymbolName, bool, int64_t, double, std::string,
                 std::vector<ExportedInt>, std::vector<double>,
                 std::vector<bool>, DType, MemoryFormat, DeviceArgument,
                 LayoutArgument, std::shared_ptr<ExportedGraph>>;

struct ExportedNode {
  /// "torch.ops.aten.add.Tensor", "_operator.mul".
  std::string target;
  /// By the schema's names; "" for higher-order ops.
  std::vector<std::pair<std::string, ExportedArgument>> inputs;
  std::vector<ExportedArgument> outputs;
  std::string module;
  std::string source;
};

struct ExportedGraph {
  std::vector<ExportedArgument> inputs;
  std::vector<ExportedArgument> outputs;
  std::vector<ExportedNode> nodes;
  std::map<std::string, ExportedTensor> tensors;
};

/// A parameter, buffer, constant or input.
struct ExportedLeaf {
  ValueKind kind = ValueKind::Input;
  /// FQNs, or the one name of an input.
  std::vector<std::string> names;
  /// The graph's names for it; the nodes use any of them.
  std::vector<std::string> placeholders;
  bool persistent = true;
  bool trainable = false;
  Storage storage;
};

class ScriptFile;

struct ExportedProgram {
  ExportedGraph graph;
  std::vector<ExportedLeaf> leaves;
  /// The signature's name of each output: a key of the returned mapping
  /// ("logits"), or "".
  std::vector<std::string> outputNames;
  /// TorchScript: runs in place of the graph, whose nodes and outputs are then
  /// unknown.
  std::shared_ptr<const ScriptFile> script;
  /// Conditions on the inputs' sizes, as Python text.
  std::vector<std::string> guards;
  /// What the outputs are when the program is functional: the graph's names of
  /// the buffers' last values; of a joint graph the loss and the parameters'
  /// gradients too, by FQN.
  std::map<std::string, std::string> bufferResults;
  std::map<std::string, std::string> gradients;
  std::string jointLoss;
  bool isJoint() const { return !jointLoss.empty(); }
};

} // namespace monarch
