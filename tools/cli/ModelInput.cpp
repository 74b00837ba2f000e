#include "tools/cli/ModelInput.h"

#include "compiler/driver/Driver.h"
#include "core/registry/UserRules.h"
#include "tools/cli/planner/Model.h"

#include <algorithm>
#include <charconv>
#include <fstream>

namespace monarch::cli {
namespace {

std::optional<std::vector<int64_t>> parseSizes(std::string_view text) {
  std::vector<int64_t> sizes;
  while (true) {
    int64_t size = 0;
    const auto [end, failure] =
        std::from_chars(text.data(), text.data() + text.size(), size);
    if (failure != std::errc() || size < 0)
      return std::nullopt;
    sizes.push_back(size);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    if (text.empty())
      return sizes;
    if (text.front() != 'x')
      return std::nullopt;
    text.remove_prefix(1);
  }
}

} // namespace

Expected<ImportOptions> importOptions(const ModelOptions &options) {
  ImportOptions result;
  result.loss = options.loss;
  result.train = options.mode == "train";
  for (const std::string &shape : options.shapes) {
    const size_t equals = shape.find('=');
    const size_t colon = std::min(shape.find(':', equals), shape.size());
    const auto sizes = equals == std::string::npos
                           ? std::nullopt
                           : parseSizes(std::string_view(shape).substr(
                                 equals + 1, colon - equals - 1));
    const auto type =
        colon == shape.size()
            ? std::nullopt
            : parseDType(std::string_view(shape).substr(colon + 1));
    if (!sizes || (colon < shape.size() && !type))
      return Error{"MP1801", ExitCode::Usage, "'" + shape + "' is not a shape",
                   "--shape",
                   "write NAME=AxB, as in input_ids=8x128; for a TorchScript "
                   "file also the type: input_ids=8x128:int64"};
    const std::string name = shape.substr(0, equals);
    result.shapes[name] = *sizes;
    if (type)
      result.types[name] = *type;
  }
  return result;
}

bool isGraphFile(const std::string &path) {
  return std::ifstream(path).peek() == '{';
}

Expected<Graph> loadModel(const ModelOptions &options,
                          std::optional<int64_t> rows,
                          const std::string &dumpDirectory, FileFacts *facts) {
  auto import = importOptions(options);
  if (!import)
    return import.error();
  const bool asks =
      !options.loss.empty() || !options.shapes.empty() || !import->train;
  if (asks && isGraphFile(options.model))
    return Error{"MP1806", ExitCode::Usage,
                 "a graph file has its loss, shapes and mode already",
                 options.model,
                 "leave out --loss, --shape and --mode, or give the model"};
  import->unitRows = rows;
  if (auto error = readRules(options))
    return *error;
  auto graph = loadGraph(options.model, *import, {dumpDirectory}, facts);
  if (graph && !options.rules.empty())
    if (auto error = checkUserRules(*graph))
      return *error;
  return graph;
}

} // namespace monarch::cli
