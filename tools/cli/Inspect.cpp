// inspect: what a model file is, in numbers, or its graph as JSON.
#include "planner/cluster/Units.h"
#include "planner/describe/ModelSummary.h"
#include "tools/cli/ModelInput.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace monarch::cli {

namespace {

std::string toText(const FileFacts &facts) {
  std::string text = fmt::format("{:<12}{}", "file", facts.format);
  if (!facts.producer.empty())
    text += ", written by " + facts.producer;
  text += fmt::format("; {} nodes, ", facts.nodes);
  text += facts.weightBytes == 0
              ? "no weights"
              : planner::formatBytes(facts.weightBytes) + " of weights";
  text += '\n';
  for (const OpenSize &size : facts.openSizes)
    text += fmt::format("{:<12}{} in {}..{}: {}\n", "", size.symbol, size.low,
                        size.high ? fmt::format("{}", *size.high)
                                  : std::string("any"),
                        fmt::join(size.places, ", "));
  for (const std::string &note : facts.notes)
    text += fmt::format("{:<12}{}\n", "note", note);
  return text;
}

Json toJson(const FileFacts &facts) {
  Json json;
  json["format"] = facts.format;
  json["producer"] = facts.producer;
  json["nodes"] = facts.nodes;
  json["weight_bytes"] = facts.weightBytes;
  json["open_sizes"] = Json::array();
  for (const OpenSize &size : facts.openSizes)
    json["open_sizes"].push_back(
        {{"symbol", size.symbol},
         {"low", size.low},
         {"high", size.high ? Json(*size.high) : Json()},
         {"places", size.places}});
  json["notes"] = facts.notes;
  return json;
}

} // namespace

int inspect(const InspectOptions &options, const Console &console) {
  const std::string &path = options.model.model;
  FileFacts facts;
  const auto graph = loadModel(options.model, options.microBatch, "", &facts);
  if (!graph)
    return console.fail(graph.error());
  if (options.emit == "graph") {
    console.file(writeGraph(*graph));
    return static_cast<int>(ExitCode::Ok);
  }

  std::string fileText = fmt::format("{:<12}monarch.graph/1\n", "file");
  Json fileJson = {{"format", "monarch.graph/1"}};
  if (!isGraphFile(path)) {
    fileText = toText(facts);
    fileJson = toJson(facts);
  }
  const StrategySpace space(*graph);
  const planner::ModelSummary summary = planner::summarizeModel(space);
  Json document = planner::toJson(*graph, summary);
  document["file"] = std::move(fileJson);
  console.result(fileText + planner::toText(*graph, summary), document);
  return static_cast<int>(ExitCode::Ok);
}

} // namespace monarch::cli
