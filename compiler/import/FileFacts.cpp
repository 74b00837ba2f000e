//===- FileFacts.cpp - what a model file says of itself -------------------===//
#include "compiler/import/ReadProgram.h"

#include <fmt/format.h>

#include <algorithm>

namespace monarch {

namespace {

bool isWeight(std::string_view record) {
  for (std::string_view prefix :
       {"data/weights/weight_", "data/constants/tensor_"})
    if (record.substr(0, prefix.size()) == prefix)
      return true;
  return false;
}

std::vector<OpenSize> openSizes(const JsonValue &json,
                                const ExportedProgram &program) {
  std::vector<OpenSize> sizes;
  for (const auto &[symbol, range] : json["range_constraints"].fields()) {
    OpenSize size;
    size.symbol = symbol;
    if (auto low = range.find("min_val"); low && low->isInteger())
      size.low = low->integer();
    if (auto high = range.find("max_val"); high && high->isInteger())
      size.high = high->integer();
    for (const ExportedLeaf &leaf : program.leaves) {
      if (leaf.kind != ValueKind::Input)
        continue;
      const auto &dims =
          program.graph.tensors.at(leaf.placeholders.front()).sizes;
      for (size_t d = 0; d < dims.size(); ++d)
        for (const std::string &name : dims[d].symbols)
          if (name == symbol)
            size.places.push_back(
                fmt::format("{} dim {}", leaf.names.front(), d));
    }
    // Sizes inside the graph that no input shows are its own business.
    if (!size.places.empty())
      sizes.push_back(std::move(size));
  }
  return sizes;
}

/// Whether the node does something else in training; its flag is false.
bool isInEvalMode(const ExportedNode &node) {
  const bool isDropout =
      node.target == "torch.ops.aten.dropout.default" ||
      node.target == "torch.ops.aten.feature_dropout.default";
  const char *flag = isDropout ? "train" : "training";
  if (!isDropout && node.target != "torch.ops.aten.batch_norm.default")
    return false;
  return std::any_of(
      node.inputs.begin(), node.inputs.end(), [&](const auto &input) {
        const bool *value = std::get_if<bool>(&input.second);
        return input.first == flag && value != nullptr && !*value;
      });
}

/// "" when no op was recorded in eval mode.
std::string evalModeNote(const ExportedGraph &graph) {
  std::map<std::string, int> counts;
  std::string first;
  for (const ExportedNode &node : graph.nodes)
    if (isInEvalMode(node)) {
      ++counts[node.target.substr(15, node.target.rfind('.') - 15)];
      if (first.empty())
        first = originText(node.module, node.source);
    }
  if (counts.empty())
    return "";
  std::string ops;
  for (const auto &[name, count] : counts)
    ops += fmt::format("{}{} x {}", ops.empty() ? "" : ", ", name, count);
  return fmt::format("exported in eval mode ({}, first at {}): training keeps "
                     "that behaviour; export model.train() to train",
                     ops, first);
}

} // namespace

FileFacts factsOf(const ModelArchive &model, const ExportedProgram &program,
                  const JsonValue &root) {
  FileFacts facts;
  const JsonValue version = root["schema_version"];
  facts.format =
      fmt::format("torch.export archive, schema {}.{}",
                  version["major"].integer(), version["minor"].integer());
  if (auto producer = root.find("torch_version");
      producer && producer->isString())
    facts.producer = "torch " + producer->string();
  facts.nodes = static_cast<int64_t>(program.graph.nodes.size());
  for (const auto &[record, place] : model.archive.records())
    if (isWeight(record))
      facts.weightBytes += static_cast<int64_t>(place.size);
  facts.openSizes = openSizes(root, program);
  for (const ExportedNode &node : program.graph.nodes)
    if (node.target == "torch.ops.higher_order.cond")
      facts.notes.push_back(
          "cond at " + originText(node.module, node.source) +
          ": both branches are computed, and each result is selected");
  if (auto note = evalModeNote(program.graph); !note.empty())
    facts.notes.push_back(std::move(note));
  if (program.isJoint())
    facts.notes.push_back("forward and backward as the file has them: the "
                          "gradients are its outputs");
  return facts;
}

} // namespace monarch
