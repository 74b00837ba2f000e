//===- ReadScript.cpp - TorchScript files among the models ----------------===//
#include "compiler/import/ReadProgram.h"
#include "compiler/import/capture/ScriptProgram.h"

namespace monarch {

Expected<ExportedProgram> readScriptModel(const std::string &path,
                                          const ImportOptions &options,
                                          FileFacts *facts) {
  std::map<std::string, GivenInput> inputs;
  for (const auto &[name, shape] : options.shapes) {
    GivenInput &input = inputs[name];
    input.shape = shape;
    if (auto type = options.types.find(name); type != options.types.end())
      input.type = type->second;
  }
  ScriptFacts read;
  auto program = readScript(path, inputs, read);
  if (facts != nullptr) {
    facts->format = read.isTraced ? "TorchScript archive, traced"
                                  : "TorchScript archive, scripted";
    facts->nodes = read.nodes;
    facts->weightBytes = read.weightBytes;
  }
  return program;
}

} // namespace monarch
