//===- Normalize.h - from a raw capture to the joint graph ----------------===//
//
// Plain functions on graphs. After `normalize` a graph has no detach, alias,
// copy or full slice, no sizes as numbers and no dead op; its ids are dense.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/graph/Graph.h"

#include <set>

namespace monarch {

Graph normalize(Graph raw);

/// Names of the InverseCount leaves that do not go linearly into the loss, and
/// nowhere else.
std::set<std::string> nonlinearCounts(const Graph &graph);
/// Whether the loss is a sum over rows, or sums divided by their counts.
bool isSeparable(const Graph &graph);

/// Whether rows meet before they are summed into the loss, as far as real
/// numbers and known batch dims tell: one row against another, or statistics
/// over rows.
bool mixesRows(const Graph &graph);

/// The graph of `a`, its shapes and counts as functions of the unit's rows,
/// from two captures of one program at different rows; nullopt when they are
/// not multiples of the rows or more than shapes differs.
std::optional<Graph> inferBatch(const Graph &a, const Graph &b);

} // namespace monarch
