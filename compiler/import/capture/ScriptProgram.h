//===- ScriptProgram.h - a TorchScript file as a program ------------------===//
//
// Leaves and inputs as those of a .pt2; in place of nodes there is the script,
// which ScriptInterpreter.h runs. No LibTorch here.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/import/capture/ExportedProgram.h"

namespace monarch {

/// --shape: a TorchScript file does not say what its inputs look like, but for
/// traces.
struct GivenInput {
  std::vector<int64_t> shape;
  /// Absent: that of the trace, else float32.
  std::optional<DType> type;
};

struct ScriptFacts {
  bool isTraced = false;
  int64_t nodes = 0;
  int64_t weightBytes = 0;
};

/// `facts` is filled once the file is read, also when inputs are missing.
Expected<ExportedProgram>
readScript(const std::string &path,
           const std::map<std::string, GivenInput> &given, ScriptFacts &facts);

/// What an attribute is called among the program's tensors: no input has this
/// name.
std::string scriptPlaceholder(const std::string &name);

} // namespace monarch
