//===- GraphFormat.h - words of monarch.graph/1 ---------------------------===//
//
// What the reader and the writer of the graph's file share.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/graph/Graph.h"

#include <array>

namespace monarch {

inline constexpr std::string_view GraphSchema = "monarch.graph/1";

/// In the order of ValueKind.
inline constexpr std::array<std::string_view, 8> ValueKindNames = {
    "parameter", "buffer",        "input", "constant",
    "random",    "inverse_count", "seed",  "result"};

inline std::string_view nameOf(ValueKind kind) {
  return ValueKindNames[static_cast<size_t>(kind)];
}

} // namespace monarch
