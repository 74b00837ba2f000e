//===- CompileProgram.h - a plan file and a model to program files --------===//
#pragma once

#include "compiler/driver/Driver.h"
#include "tools/cli/Verbs.h"

namespace monarch::cli {

/// What `compile` does, and `run` of a plan before it runs.
Expected<Compiled> compileProgram(const CompileVerbOptions &options);

} // namespace monarch::cli
