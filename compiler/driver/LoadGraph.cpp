//===- LoadGraph.cpp - the joint graph of a model file --------------------===//

#include "compiler/analyze/AtenGraph.h"
#include "compiler/analyze/Passes.h"
#include "compiler/driver/Phases.h"
#include "compiler/import/Import.h"
#include "core/support/Files.h"

#include <fstream>

using namespace mlir;

namespace monarch {

/// A graph's file is JSON; no model file begins with a brace.
static bool isGraphFile(const std::string &path) {
  return std::ifstream(path, std::ios::binary).get() == '{';
}

static Expected<Graph> readGraphFile(const std::string &path,
                                     const ImportOptions &options) {
  Expected<std::string> text = readFile(path);
  if (!text)
    return text.error();
  Expected<Graph> graph = readGraph(*text);
  if (!graph || !options.unitRows)
    return graph;
  return withUnitRows(*graph, *options.unitRows);
}

Expected<Graph> loadGraph(const std::string &modelPath,
                          const ImportOptions &options, const DumpOptions &dump,
                          FileFacts *facts) {
  if (isGraphFile(modelPath))
    return readGraphFile(modelPath, options);
  Expected<Graph> imported = importModel(modelPath, options, facts);
  if (!imported)
    return imported;

  Phases phases(dump, /*first=*/1);
  OwningOpRef<ModuleOp> module = toAten(*imported, phases.context);
  if (auto error = phases.finish(*module, "aten"))
    return *error;
  auto error = phases.run(*module, [](PassManager &manager) {
    manager.addNestedPass<aten::GraphOp>(createDropDeadCalls());
    manager.addPass(createVerifyJoint());
  });
  if (error)
    return *error;
  if (auto error = phases.finish(*module, "aten-live"))
    return *error;
  return graphOf(*module);
}

} // namespace monarch
