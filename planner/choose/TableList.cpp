//===- TableList.cpp - monarch.tables/1, and where its tables go ----------===//
#include "planner/choose/TableList.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>

namespace monarch::planner {

namespace {

constexpr double GiB = 1024.0 * 1024 * 1024;
constexpr int64_t MostRows = int64_t(1) << 40, MostWidth = 1 << 20;

std::string_view nameOf(TableSplit split) {
  switch (split) {
  case TableSplit::Whole:
    return "whole";
  case TableSplit::Rows:
    return "rows";
  case TableSplit::Columns:
    return "columns";
  }
  return "";
}

EmbeddingTable readTable(const JsonValue &json) {
  EmbeddingTable table;
  json.refuseFieldsBeside(
      {"name", "rows", "width", "lookups", "dtype", "row_state_bytes"});
  table.name = json["name"].string();
  table.rows = json["rows"].integer(1, MostRows);
  table.width = json["width"].integer(1, MostWidth);
  auto atLeast = [&](const char *key, double least, double &value) {
    const auto field = json.find(key);
    if (!field)
      return;
    constexpr double Most = 1e9;
    value = field->number();
    if (!(value >= least && value <= Most))
      field->fail(fmt::format("must be a number from {} to {}", least, Most));
  };
  atLeast("lookups", 1e-6, table.lookups);
  atLeast("row_state_bytes", 0, table.rowStateBytes);
  if (const auto type = json.find("dtype")) {
    const auto known = parseDType(type->string());
    if (known)
      table.elementBytes = static_cast<double>(byteWidth(*known));
    else
      type->fail("is not a type; types are float32, bfloat16, ...");
  }
  return table;
}

} // namespace

bool looksLikeTables(std::string_view text) {
  constexpr size_t Beginning = 200;
  return text.substr(0, Beginning).find("monarch.tables/") !=
         std::string_view::npos;
}

Expected<TableList> readTables(std::string_view text,
                               const std::string &where) {
  auto json = parseJson(text, where);
  if (!json)
    return json.error();
  JsonDocument document{*json, where, "MP1203", ExitCode::BadInput,
                        "write {\"schema\": \"monarch.tables/1\", \"tables\": "
                        "[{\"name\", \"rows\", \"width\"}]}"};
  const JsonValue root(document);
  root.refuseFieldsBeside({"schema", "tables", "dense_bytes"});
  if (root["schema"].string() != "monarch.tables/1")
    root["schema"].fail("must be \"monarch.tables/1\"");
  TableList list;
  std::map<std::string, size_t> seen;
  for (const JsonValue &entry : root["tables"].elements()) {
    list.tables.push_back(readTable(entry));
    const std::string &name = list.tables.back().name;
    if (!seen.emplace(name, seen.size()).second)
      entry.fail(
          fmt::format("\"{}\" stands twice: a table is placed once", name));
  }
  if (root.ok() && list.tables.empty())
    root["tables"].fail("must list one table at least");
  constexpr int64_t MostBytes = int64_t(1) << 50;
  if (const auto dense = root.find("dense_bytes"))
    list.denseBytes = static_cast<double>(dense->integer(0, MostBytes));
  if (document.error)
    return *document.error;
  return list;
}

std::string summarize(const TablePlan &plan,
                      const std::vector<EmbeddingTable> &tables,
                      const Machine &machine, const TableRequest &request) {
  std::string text = fmt::format(
      "{} tables on {} x {}: {:.4g} ms of look-ups, updates and exchanges a "
      "step, gap {:.1f} % at most\n",
      tables.size(), machine.devices, machine.device.name, 1e3 * plan.seconds,
      100 * plan.gap());
  text += fmt::format(
      "memory    {:.1f} of {:.1f} GiB on the fullest device: dense part "
      "{:.1f}; {:.1f} of the card's {:.1f} are reserved ({:.0f} % headroom, "
      "context)\n",
      plan.bytes / GiB, plan.usableBytes / GiB, request.denseBytes / GiB,
      (machine.device.memoryBytes - plan.usableBytes) / GiB,
      machine.device.memoryBytes / GiB, 100 * request.headroom);
  // The largest first; many small ones are counted.
  constexpr size_t Shown = 20;
  std::vector<const TablePlacement *> order;
  for (const TablePlacement &placement : plan.placements)
    order.push_back(&placement);
  std::stable_sort(order.begin(), order.end(), [&](auto *a, auto *b) {
    return tables[a->table].bytes() > tables[b->table].bytes();
  });
  for (size_t i = 0; i < std::min(order.size(), Shown); ++i) {
    const TablePlacement &placement = *order[i];
    text += fmt::format(
        "  {} ({:.1f} GiB): {} on {}\n", tables[placement.table].name,
        tables[placement.table].bytes() / GiB,
        placement.split == TableSplit::Whole
            ? "whole"
            : fmt::format("{} parts by {}", placement.devices.size(),
                          nameOf(placement.split)),
        fmt::join(placement.devices, ", "));
  }
  if (order.size() > Shown)
    text += fmt::format("  and {} smaller ones\n", order.size() - Shown);
  return text;
}

Json toJson(const TablePlan &plan, const std::vector<EmbeddingTable> &tables,
            const Machine &machine, const TableRequest &request) {
  Json json;
  json["device"] = machine.device.name;
  json["devices"] = machine.devices;
  json["global_batch"] = request.globalBatch;
  json["seconds"] = rounded(plan.seconds);
  json["bound_seconds"] = rounded(plan.boundSeconds);
  json["memory_bytes"] = {
      {"total", rounded(plan.bytes)},
      {"usable", rounded(plan.usableBytes)},
      {"reserved", rounded(machine.device.memoryBytes - plan.usableBytes)},
      {"dense", rounded(request.denseBytes)}};
  json["placements"] = Json::array();
  for (const TablePlacement &placement : plan.placements)
    json["placements"].push_back(
        {{"table", tables[placement.table].name},
         {"bytes", rounded(tables[placement.table].bytes())},
         {"split", nameOf(placement.split)},
         {"devices", placement.devices}});
  return json;
}

} // namespace monarch::planner
