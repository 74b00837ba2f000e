//===- Verbs.h - one function a verb of monarch-plan ----------------------===//
//
// Options as the command line gives them; what they mean is DESIGN §8. Each
// verb returns an exit code and leaves nothing half written.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/launch/RunOptions.h"
#include "tools/cli/Console.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace monarch::cli {

struct ModelOptions {
  std::string model;
  std::string loss;
  /// "name=AxB", for sizes that the file leaves open.
  std::vector<std::string> shapes;
  std::string mode = "train";
};

struct InspectOptions {
  ModelOptions model;
  /// "graph": the document monarch.graph/1; "": a summary for people.
  std::string emit;
  std::optional<int64_t> microBatch;
};
int inspect(const InspectOptions &options, const Console &console);

struct PlanOptions {
  ModelOptions model;
  std::string cluster;
  int64_t globalBatch = 0;
  std::optional<int64_t> microBatch;
  /// "dp=2,tp=2": pins.
  std::string fix;
  std::string optimizer = "adamw";
  std::string target = "monarch";
  /// "": nothing is written; "-": stdout.
  std::string output;
};
int plan(const PlanOptions &options, const Console &console);

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

int version(const Console &console);

} // namespace monarch::cli
