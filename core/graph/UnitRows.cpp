//===- UnitRows.cpp - the same graph for another unit ---------------------===//
//
// Sizes are not stored in ops, so a unit of other rows differs in the shapes of
// values and in the elements that a mean counts in a unit, nothing else.
//
//===----------------------------------------------------------------------===//
#include "core/graph/Graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace monarch {

/// Of one tensor.
static constexpr int64_t MaxBytes = int64_t(1) << 50;

int64_t elementCount(const Value &value) {
  return std::accumulate(value.shape.begin(), value.shape.end(), int64_t{1},
                         std::multiplies<>());
}

int64_t byteCount(const Value &value) {
  return elementCount(value) * byteWidth(value.type);
}

static bool fits(const Value &value, int64_t rows) {
  int64_t bytes = byteWidth(value.type);
  for (size_t dim = 0; dim < value.shape.size(); ++dim) {
    int64_t size = value.shape[dim];
    if (value.batch[dim] != 0 &&
        __builtin_mul_overflow(value.batch[dim], rows, &size))
      return false;
    if (__builtin_mul_overflow(bytes, size, &bytes) || bytes > MaxBytes)
      return false;
  }
  return true;
}

bool canHaveUnitRows(const Graph &graph, int64_t rows) {
  return std::all_of(graph.values.begin(), graph.values.end(),
                     [&](const Value &value) { return fits(value, rows); });
}

Expected<Graph> withUnitRows(const Graph &graph, int64_t rows) {
  if (rows < 1)
    return Error{"MP1022", ExitCode::Usage,
                 fmt::format("a unit of {} rows is none", rows), "",
                 "ask for at least one row"};
  if (rows == graph.unitRows)
    return graph;
  if (!graph.dynamicBatch)
    return Error{"MP1022", ExitCode::BadInput,
                 fmt::format("the model was exported with a fixed batch of {} "
                             "rows, so a unit cannot have {}",
                             graph.unitRows, rows),
                 "",
                 fmt::format("ask for {} rows, or export with a dynamic batch "
                             "dim (torch.export.Dim.DYNAMIC)",
                             graph.unitRows)};
  if (!canHaveUnitRows(graph, rows))
    return Error{"MP1022", ExitCode::BadInput,
                 fmt::format("a unit of {} rows has tensors of more than {} "
                             "bytes",
                             rows, MaxBytes),
                 "", "ask for fewer rows"};
  Graph scaled = graph;
  scaled.unitRows = rows;
  for (Value &value : scaled.values)
    for (size_t dim = 0; dim < value.shape.size(); ++dim)
      if (value.batch[dim] != 0)
        value.shape[dim] = value.batch[dim] * rows;
  for (LossCount &count : scaled.counts)
    count.perUnit = count.perUnit / graph.unitRows * rows;
  return scaled;
}

} // namespace monarch
