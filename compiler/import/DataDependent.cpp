//===- DataDependent.cpp - nodes that make sizes out of data --------------===//
//
// A size from data has a symbol of torch.export's "u" series. Only the node
// that makes a symbol is named, not those that pass it on.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/DataDependent.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace monarch {

namespace {

constexpr const char *OpsPrefix = "torch.ops.";

bool isFromData(const std::string &symbol) {
  return symbol.size() > 1 && symbol[0] == 'u' &&
         symbol.find_first_not_of("0123456789", 1) == std::string::npos;
}

class Finder {
public:
  std::vector<Error> errors;

  void visit(const ExportedGraph &graph) {
    for (const ExportedNode &node : graph.nodes)
      visit(graph, node);
  }

private:
  void visit(const ExportedGraph &graph, const ExportedNode &node) {
    if (isRegion(node, "while_loop") || isRegion(node, "scan") ||
        isRegion(node, "associative_scan") || isRegion(node, "map_impl"))
      return add(node, "a loop whose length or body no plan sees",
                 "write it as a Python loop of fixed length, which export "
                 "unrolls");
    for (const auto &[name, argument] : node.inputs)
      if (const auto *body =
              std::get_if<std::shared_ptr<ExportedGraph>>(&argument))
        visit(**body);
    if (node.target == "torch.ops.aten.item.default" ||
        node.target == "torch.ops.aten._local_scalar_dense.default")
      return add(node, "a number that is read out of a tensor",
                 "keep it a tensor");
    bool makesSize = false;
    for (const ExportedArgument &output : node.outputs) {
      if (const auto *tensor = std::get_if<TensorName>(&output))
        makesSize |= makesSymbol(graph, tensor->name);
      if (const auto *list = std::get_if<std::vector<TensorName>>(&output))
        for (const TensorName &tensor : *list)
          makesSize |= makesSymbol(graph, tensor.name);
    }
    if (makesSize)
      add(node, "a result whose size depends on data",
          "keep the size: torch.where instead of a boolean index, "
          "torch.nonzero_static, or a mask");
  }

  static bool isRegion(const ExportedNode &node, const std::string &kind) {
    return node.target == "torch.ops.higher_order." + kind;
  }

  bool makesSymbol(const ExportedGraph &graph, const std::string &name) {
    bool makes = false;
    if (auto tensor = graph.tensors.find(name); tensor != graph.tensors.end())
      for (const ExportedSize &size : tensor->second.sizes)
        for (const std::string &symbol : size.symbols)
          makes |= isFromData(symbol) && seen.insert(symbol).second;
    return makes;
  }

  void add(const ExportedNode &node, const std::string &what,
           const std::string &fix) {
    const std::string name = node.target.rfind(OpsPrefix, 0) == 0
                                 ? node.target.substr(10)
                                 : node.target;
    errors.push_back({"MP1024", ExitCode::BadInput, name + ": " + what,
                      originText(node.module, node.source), fix});
  }

  std::set<std::string> seen;
};

} // namespace

std::optional<Error> findDataDependence(const ExportedProgram &program) {
  Finder finder;
  finder.visit(program.graph);
  if (finder.errors.empty())
    return std::nullopt;
  Error all = joined(finder.errors);
  // Each kind's way out, once.
  std::vector<std::string> fixes;
  for (const Error &error : finder.errors)
    if (std::find(fixes.begin(), fixes.end(), error.fix) == fixes.end())
      fixes.push_back(error.fix);
  all.fix = fmt::format("{}", fmt::join(fixes, "; "));
  return all;
}

} // namespace monarch
