//===- UnitRows.cpp - the same graph for another unit ---------------------===//
//
// Sizes are not stored in ops, so a unit of other rows differs in the shapes of
// values and in the elements that a mean counts in a unit, nothing else.
//
//===----------------------------------------------------------------------===//
#include "core/graph/Graph.h"

#include <fmt/format.h>

#include <numeric>

namespace monarch {

int64_t elementCount(const Value &value) {
  return std::accumulate(value.shape.begin(), value.shape.end(), int64_t{1},
                         std::multiplies<>());
}

int64_t byteCount(const Value &value) {
  return elementCount(value) * byteWidth(value.type);
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
