#include "compiler/import/JointAttention.h"

#include "core/graph/Graph.h"

#include <algorithm>

namespace monarch {

namespace {

/// The rank of a node's input; -1 when it is no tensor with a shape.
int64_t rankOf(const ExportedGraph &graph, const ExportedNode &node,
               const char *name) {
  for (const auto &[key, argument] : node.inputs)
    if (const auto *tensor = std::get_if<TensorName>(&argument);
        tensor && key == name)
      if (auto found = graph.tensors.find(tensor->name);
          found != graph.tensors.end())
        return static_cast<int64_t>(found->second.sizes.size());
  return -1;
}

bool isWrong(const ExportedGraph &graph, const ExportedNode &node) {
  if (node.target.find("aten._scaled_dot_product_flash_attention_for_cpu_"
                       "backward") == std::string::npos)
    return false;
  const int64_t query = rankOf(graph, node, "query");
  const int64_t sums = rankOf(graph, node, "logsumexp");
  return query >= 0 && sums >= 0 && sums != query - 1;
}

} // namespace

std::optional<Error> findWrongAttention(const ExportedProgram &program) {
  if (!program.isJoint())
    return std::nullopt;
  const auto &nodes = program.graph.nodes;
  const auto wrong =
      std::find_if(nodes.begin(), nodes.end(), [&](const ExportedNode &node) {
        return isWrong(program.graph, node);
      });
  if (wrong == nodes.end())
    return std::nullopt;
  return Error{
      "MP1026", ExitCode::BadInput,
      "the gradients in the file are wrong: PyTorch gave the fused "
      "backward of attention (" +
          wrong->target.substr(wrong->target.find("aten.")) +
          ") the attention's weights for the logarithm of their sums",
      wrong->module,
      "export the forward pass alone (its gradients are made here), or "
      "export inside "
      "torch.nn.attention.sdpa_kernel(SDPBackend.MATH)"};
}

} // namespace monarch
