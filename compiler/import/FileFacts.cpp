//===- FileFacts.cpp - what a model file says of itself -------------------===//
#include "compiler/import/ReadProgram.h"

#include <fmt/format.h>

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
  return facts;
}

} // namespace monarch
