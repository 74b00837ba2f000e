//===- SummaryText.cpp - a model's summary for people and programs --------===//
#include "planner/cluster/Units.h"
#include "planner/describe/ModelSummary.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace monarch::planner {

namespace {

/// 1234567 -> "1.23 M"; for counts and, with a unit, FLOPs.
std::string formatCount(int64_t count, std::string_view unit = "") {
  constexpr std::array<std::string_view, 6> Prefixes = {"",  "k", "M",
                                                        "G", "T", "P"};
  double value = static_cast<double>(count);
  size_t prefix = 0;
  while (value >= 999.5 && prefix + 1 < Prefixes.size()) {
    value /= 1000;
    ++prefix;
  }
  const int decimals = prefix == 0 ? 0 : value < 9.995 ? 2 : value < 99.95;
  const std::string unitText = fmt::format("{}{}", Prefixes[prefix], unit);
  return fmt::format("{:.{}f}{}{}", value, decimals,
                     unitText.empty() ? "" : " ", unitText);
}

/// "b x 16" of a dynamic batch: how each size follows the rows of the unit.
std::string shapeText(const Graph &graph, const Value &value) {
  std::vector<std::string> sizes;
  for (size_t d = 0; d < value.shape.size(); ++d) {
    const int64_t rows = graph.dynamicBatch ? value.batch[d] : 0;
    sizes.push_back(rows == 0   ? fmt::format("{}", value.shape[d])
                    : rows == 1 ? "b"
                                : fmt::format("{}b", rows));
  }
  return fmt::format("[{}]", fmt::join(sizes, ", "));
}

/// 0, 1, 2, 5 -> "0..2, 5".
std::string ranges(const std::vector<int64_t> &numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1)
      ++last;
    text += text.empty() ? "" : ", ";
    text += last == i ? fmt::format("{}", numbers[i])
                      : fmt::format("{}..{}", numbers[i], numbers[last]);
    i = last + 1;
  }
  return text;
}

/// Degrees beyond are shown only where all heads divide.
constexpr int64_t MostPartialDegree = 16;

std::string heading(std::string_view name) {
  return fmt::format("{:<12}", name);
}

std::string inputLines(const Graph &graph) {
  std::string text;
  for (const Input &input : graph.inputs) {
    const Value &value = graph.value(input.value);
    text +=
        fmt::format("{}{} {} {}\n", heading(text.empty() ? "inputs" : ""),
                    input.name, toString(value.type), shapeText(graph, value));
  }
  text += heading("unit");
  text += graph.dynamicBatch
              ? fmt::format("b rows, any number; the figures below are of "
                            "{}\n",
                            graph.unitRows)
              : fmt::format("{} rows, fixed by the export: a batch is a "
                            "multiple of it\n",
                            graph.unitRows);
  if (graph.loss == None)
    text += heading("loss") + "none: forward alone\n";
  else
    text += heading("loss") +
            (graph.separable
                 ? "a mean over the global batch, exact for any unit\n"
                 : "depends on which rows share a unit: the unit is part of "
                   "the model, never chosen\n");
  return text;
}

std::string parameterLines(const ModelSummary &summary) {
  int64_t bytes = 0;
  for (const ParameterGroup &group : summary.parameters)
    bytes += group.bytes();
  std::string text =
      heading("parameters") +
      fmt::format("{} ({} exactly), {}", formatCount(summary.parameterCount()),
                  summary.parameterCount(), formatBytes(bytes));
  if (summary.parameterCount(true) != summary.parameterCount())
    text += fmt::format("; {} are trained",
                        formatCount(summary.parameterCount(true)));
  text += fmt::format("; buffers and constants {}\n",
                      formatBytes(summary.bufferBytes));
  size_t width = 0;
  for (const ParameterGroup &group : summary.parameters)
    width = std::max(width, group.name.size());
  for (const ParameterGroup &group : summary.parameters)
    text += fmt::format(
        "  {:<{}} {:>5} {:>9} {} [{}]{}\n", group.name, width,
        group.count > 1 ? fmt::format("x {}", group.count) : std::string(),
        formatCount(group.elements()), toString(group.type),
        fmt::join(group.shape, ", "), group.trainable ? "" : " frozen");
  for (const std::vector<std::string> &names : summary.ties)
    text += fmt::format("  tied: {}\n", fmt::join(names, " = "));
  return text;
}

std::string workLines(const ModelSummary &summary) {
  std::string text = heading("work") +
                     fmt::format("forward {}, backward {} a unit\n",
                                 formatCount(summary.forwardFlops, "FLOP"),
                                 formatCount(summary.backwardFlops, "FLOP")) +
                     heading("activations") +
                     fmt::format("{} a unit are kept for the backward\n",
                                 formatBytes(summary.savedBytes));
  std::string_view name = "blocks";
  for (const RepeatedBlock &block : summary.blocks) {
    text +=
        heading(name) +
        fmt::format(
            "{}.{{{}}}: {} equal modules of {} ops, {} each\n", block.prefix,
            ranges(block.indices), block.indices.size(), block.forwardOps,
            formatCount(block.forwardFlops + block.backwardFlops, "FLOP"));
    name = "";
  }
  return text;
}

std::string splitLines(const ModelSummary &summary) {
  std::vector<int64_t> even, partly;
  for (const TensorDegree &degree : summary.tensorDegrees)
    if (degree.even)
      even.push_back(degree.degree);
    else if (degree.degree <= MostPartialDegree)
      partly.push_back(degree.degree);
  std::string text = heading("tp");
  if (summary.heads.empty())
    text += "any degree: there is no attention with heads to split\n";
  else if (summary.tensorDegrees.empty())
    text += "none: heads do not divide\n";
  else
    text += fmt::format("{}{}{}\n", fmt::join(even, " "),
                        even.empty() || partly.empty() ? "" : "; ",
                        partly.empty()
                            ? ""
                            : fmt::format("{}: attention whole on some axis",
                                          fmt::join(partly, " ")));
  for (const AttentionHeads &heads : summary.heads)
    text += heading("") + fmt::format("{} attentions of {} query and {} "
                                      "key/value heads\n",
                                      heads.count, heads.query, heads.keyValue);
  const std::vector<int64_t> usual = {2, 4, 8};
  for (const SplitDim &dim : summary.splitDims) {
    std::vector<int64_t> uneven;
    for (int64_t degree : summary.heads.empty() ? usual : even)
      if (degree <= MostPartialDegree && dim.size % degree != 0)
        uneven.push_back(degree);
    if (!uneven.empty())
      text +=
          heading("") +
          fmt::format("{} dim {} ({}): uneven blocks under tp = {}\n",
                      dim.parameter, dim.dim, dim.size, fmt::join(uneven, " "));
  }
  text += heading("pp") + fmt::format("up to {} stages\n", summary.mostStages);
  std::string_view name = "kept whole";
  for (const auto &[op, count] : summary.wholeOps) {
    text += heading(name) + fmt::format("{} ({})\n", op, count);
    name = "";
  }
  return text;
}

} // namespace

std::string toText(const Graph &graph, const ModelSummary &summary) {
  return inputLines(graph) + parameterLines(summary) + workLines(summary) +
         splitLines(summary);
}

Json toJson(const Graph &graph, const ModelSummary &summary) {
  Json json;
  json["schema"] = "monarch.inspect/1";
  json["graph"] = digest(graph);
  json["unit_rows"] = graph.unitRows;
  json["dynamic_batch"] = graph.dynamicBatch;
  json["separable"] = graph.separable;
  json["inputs"] = Json::array();
  for (const Input &input : graph.inputs) {
    const Value &value = graph.value(input.value);
    json["inputs"].push_back({{"name", input.name},
                              {"type", toString(value.type)},
                              {"shape", value.shape},
                              {"batch", value.batch}});
  }
  json["parameter_count"] = summary.parameterCount();
  json["trainable_parameter_count"] = summary.parameterCount(true);
  json["parameters"] = Json::array();
  for (const ParameterGroup &group : summary.parameters)
    json["parameters"].push_back({{"name", group.name},
                                  {"count", group.count},
                                  {"type", toString(group.type)},
                                  {"shape", group.shape},
                                  {"trainable", group.trainable},
                                  {"bytes", group.bytes()}});
  json["ties"] = summary.ties;
  json["buffer_bytes"] = summary.bufferBytes;
  json["forward_flops"] = summary.forwardFlops;
  json["backward_flops"] = summary.backwardFlops;
  json["saved_bytes"] = summary.savedBytes;
  json["blocks"] = Json::array();
  for (const RepeatedBlock &block : summary.blocks)
    json["blocks"].push_back({{"prefix", block.prefix},
                              {"indices", block.indices},
                              {"forward_ops", block.forwardOps},
                              {"forward_flops", block.forwardFlops},
                              {"backward_flops", block.backwardFlops}});
  json["attention"] = Json::array();
  for (const AttentionHeads &heads : summary.heads)
    json["attention"].push_back({{"query_heads", heads.query},
                                 {"key_value_heads", heads.keyValue},
                                 {"count", heads.count}});
  json["tensor_degrees"] = Json::array();
  for (const TensorDegree &degree : summary.tensorDegrees)
    json["tensor_degrees"].push_back(
        {{"degree", degree.degree}, {"even", degree.even}});
  json["split_dims"] = Json::array();
  for (const SplitDim &dim : summary.splitDims)
    json["split_dims"].push_back(
        {{"parameter", dim.parameter}, {"dim", dim.dim}, {"size", dim.size}});
  json["most_stages"] = summary.mostStages;
  json["kept_whole"] = summary.wholeOps;
  return json;
}

} // namespace monarch::planner
