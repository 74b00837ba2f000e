#include "tools/cli/planner/Model.h"

#include "core/registry/UserRules.h"
#include "core/support/Files.h"

#include <filesystem>
#include <fstream>

namespace monarch::cli {

namespace {

Error usage(const char *id, std::string what, const std::string &where,
            std::string fix) {
  return {id, ExitCode::Usage, std::move(what), where, std::move(fix)};
}

bool isJson(const std::string &path) {
  std::ifstream stream(path, std::ios::binary);
  int first = stream.get();
  while (first == ' ' || first == '\n' || first == '\r' || first == '\t')
    first = stream.get();
  return first == '{';
}

bool asksTheImporter(const ModelOptions &options) {
  return !options.loss.empty() || !options.shapes.empty() ||
         options.mode != "train";
}

Expected<Model> readGraphModel(const std::string &text,
                               const ModelRequest &request) {
  const std::string &path = request.options.model;
  if (asksTheImporter(request.options))
    return usage("MP1806", "a graph file has its loss, shapes and mode already",
                 path,
                 "leave out --loss, --shape and --mode, or give the model");
  auto graph = readGraph(text);
  if (!graph)
    return graph.error();
  if (auto error = checkUserRules(*graph))
    return *error;
  return Model{std::nullopt, std::move(*graph)};
}

Expected<Model> readConfigModel(const std::string &text,
                                const ModelRequest &request) {
  const std::string &path = request.options.model;
  ModelOptions options = request.options;
  if (request.mayServe)
    options.mode = "train";
  if (asksTheImporter(options))
    return usage("MP1809", "a config.json has no outputs, inputs or modes",
                 path,
                 "leave out --loss, --shape and --mode: the model is a decoder "
                 "that is trained on the next token, or served by plan");
  if (!request.sequence)
    return usage("MP1808", "a config.json says no sequence length", path,
                 "give --seq-len TOKENS");
  auto shape = planner::readModelConfig(text, path, *request.sequence);
  if (!shape)
    return shape.error();
  if (!request.dtype.empty() && request.dtype != "fp8")
    shape->type = *parseDType(request.dtype);
  return Model{*shape, std::nullopt};
}

} // namespace

std::optional<Error> readRules(const ModelOptions &options) {
  if (options.rules.empty())
    return std::nullopt;
  const auto text = readFile(options.rules);
  if (!text)
    return text.error();
  return addUserRules(*text, options.rules);
}

Expected<Model> loadPlannerModel(const ModelRequest &request,
                                 const ModelLoader &loader) {
  if (auto error = readRules(request.options))
    return *error;
  const std::string &path = request.options.model;
  if (!std::filesystem::exists(path))
    return readFile(path).error();
  if (!isJson(path)) {
    if (request.sequence)
      return usage("MP1810", "--seq-len is for a config.json", path,
                   "a model file has its sequence; open sizes are set with "
                   "--shape");
    auto graph = loader(request.options);
    if (!graph)
      return graph.error();
    return Model{std::nullopt, std::move(*graph)};
  }
  const auto text = readFile(path);
  if (!text)
    return text.error();
  // A graph may be large: its schema stands first.
  constexpr size_t Beginning = 200;
  const bool isGraph =
      std::string_view(*text).substr(0, Beginning).find("monarch.graph/") !=
      std::string_view::npos;
  if (!isGraph)
    return readConfigModel(*text, request);
  if (request.sequence)
    return usage("MP1810", "--seq-len is for a config.json", path,
                 "a graph has its sequence");
  return readGraphModel(*text, request);
}

Expected<planner::ModelWork> workOf(const Model &model,
                                    const planner::KernelStyle &style) {
  return model.shape ? planner::workOf(*model.shape, style)
                     : planner::workOf(*model.graph, style);
}

Expected<Graph> graphOf(const Model &model) {
  if (model.graph)
    return *model.graph;
  return planner::buildGraph(*model.shape);
}

} // namespace monarch::cli
