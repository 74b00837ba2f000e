//===- EmbeddingTables.h - tables of recommendation models ----------------===//
//
// Places embedding tables on the devices of data parallelism: whole, split by
// rows, or split by columns. A device's step is the dense part, which all do
// alike, and its share of lookups, updates and exchanges; the slowest device
// counts, and each must hold its tables beside the dense part.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "planner/step/Estimate.h"

namespace monarch::planner {

struct EmbeddingTable {
  std::string name;
  int64_t rows = 0, width = 0;
  /// Rows of the table that one sample looks up and adds.
  double lookups = 1;
  double elementBytes = 4;
  /// Optimizer state of a row (row-wise Adagrad: one number).
  double rowStateBytes = 4;

  double bytes() const {
    return static_cast<double>(rows) *
           (static_cast<double>(width) * elementBytes + rowStateBytes);
  }
};

enum class TableSplit : uint8_t { Whole, Rows, Columns };

struct TablePlacement {
  size_t table = 0;
  TableSplit split = TableSplit::Whole;
  /// One part each, in order.
  std::vector<int64_t> devices;
};

struct TableRequest {
  /// Samples of a step over all devices.
  int64_t globalBatch = 1;
  /// Of the dense part, on every device.
  double denseBytes = 0, denseSeconds = 0;
  double headroom = MemoryHeadroom;
};

struct TablePlan {
  /// By table.
  std::vector<TablePlacement> placements;
  double seconds = 0;
  /// No placement is faster.
  double boundSeconds = 0;
  double gap() const { return 1 - boundSeconds / seconds; }
  /// Of the fullest device, dense part and all.
  double bytes = 0, usableBytes = 0;
};

/// MP3310: names the table, or what all need and what there is.
Expected<TablePlan> placeTables(const std::vector<EmbeddingTable> &tables,
                                const Machine &machine, const Target &target,
                                const TableRequest &request);

} // namespace monarch::planner
