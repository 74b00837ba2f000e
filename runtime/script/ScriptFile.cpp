//===- ScriptFile.cpp - what is known of an opened file -------------------===//
#include "runtime/script/ScriptFile.h"

#include <algorithm>

#include <torch/csrc/jit/ir/ir.h>

namespace monarch {

const std::string *ScriptFile::pathOf(const c10::ivalue::Object *object) const {
  auto found = paths.find(object);
  return found == paths.end() ? nullptr : &found->second;
}

std::string ScriptFile::sourceOf(const torch::jit::Node &node) const {
  const torch::jit::SourceRange range = node.sourceRange();
  if (!range.source() || !range.source()->filename())
    return "";
  auto found = lines.find(*range.source()->filename());
  if (found == lines.end())
    return "";
  // The last line that begins at or before the node.
  const auto &table = found->second;
  auto after = std::upper_bound(
      table.begin(), table.end(), range.start(),
      [](size_t start, const auto &line) { return start < line.first; });
  return after == table.begin() ? "" : std::prev(after)->second;
}

} // namespace monarch
