//===- TableList.h - monarch.tables/1, and where its tables go ------------===//
#pragma once

#include "planner/choose/EmbeddingTables.h"

namespace monarch::planner {

/// {"schema": "monarch.tables/1", "tables": [{"name", "rows", "width",
/// "lookups", "dtype", "row_state_bytes"}], "dense_bytes": N}. Names are
/// unique: a table that stands twice would be placed twice.
struct TableList {
  std::vector<EmbeddingTable> tables;
  /// Of what every device holds beside tables.
  double denseBytes = 0;
};
/// MP1203 with the place of what is wrong.
Expected<TableList> readTables(std::string_view text, const std::string &where);
/// True when the text begins as such a document.
bool looksLikeTables(std::string_view text);

std::string summarize(const TablePlan &plan,
                      const std::vector<EmbeddingTable> &tables,
                      const Machine &machine, const TableRequest &request);
Json toJson(const TablePlan &plan, const std::vector<EmbeddingTable> &tables,
            const Machine &machine, const TableRequest &request);

} // namespace monarch::planner
