//===- Verbs.h - verbs that need the compiler or the runtime --------------===//
//
// Options as the command line gives them; what they mean is DESIGN §8. Each
// verb returns an exit code and leaves nothing half written.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/launch/RunOptions.h"
#include "tools/cli/planner/Options.h"

namespace monarch::cli {

struct InspectOptions {
  ModelOptions model;
  /// "graph": the document monarch.graph/1; "": a summary for people.
  std::string emit;
  std::optional<int64_t> microBatch;
};
int inspect(const InspectOptions &options, const Console &console);

struct CompileVerbOptions {
  ModelOptions model;
  std::string plan;
  std::string output;
  std::string dumpPhases;
};
int compile(const CompileVerbOptions &options, const Console &console);

struct RunVerbOptions {
  /// A program directory, or a plan followed by its model.
  std::string program;
  ModelOptions model;
  runtime::RunOptions run;
};
int run(RunVerbOptions options, const Console &console);

} // namespace monarch::cli
