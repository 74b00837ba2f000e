#include "tools/cli/ModelInput.h"

namespace monarch::cli {

int inspect(const InspectOptions &options, const Console &console) {
  const auto graph = loadModel(options.model, options.microBatch);
  if (!graph)
    return console.fail(graph.error());
  const std::string text = writeGraph(*graph);
  const auto document = parseJson(text, options.model.model);
  if (!document)
    return console.fail(document.error());
  console.result(text, *document);
  return static_cast<int>(ExitCode::Ok);
}

} // namespace monarch::cli
