//===- Commands.h - the verbs that need the planner alone -----------------===//
//
// Flags of plan, explain, diff, simulate, cluster and version, for both
// binaries: monarch-plan with the compiler, which reads model files too, and
// the one of preset `planner`, which needs neither LLVM nor LibTorch.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "tools/cli/planner/Options.h"

#include <CLI/CLI.hpp>

namespace monarch::cli {

void addModel(CLI::App &verb, ModelOptions &options, bool required = true);

class PlannerCommands {
public:
  explicit PlannerCommands(CLI::App &app);
  PlannerCommands(const PlannerCommands &) = delete;

  /// Runs the verb that was parsed; nullopt when it is none of these.
  std::optional<int> run(const ModelLoader &loader, const Console &console);

private:
  void addPlanFlags(CLI::App &verb, PlanOptions &options);
  void addSubject(CLI::App &verb, SubjectOptions &options, const char *what);
  void addSimulate(CLI::App &app);
  void addExplain(CLI::App &app);
  void addDiff(CLI::App &app);
  void addCluster(CLI::App &app);

  PlanOptions planOptions;
  SimulateOptions simulateOptions;
  ExplainOptions explainOptions;
  DiffOptions diffOptions;
  ClusterOptions clusterOptions;
  CLI::App *planVerb = nullptr, *simulateVerb = nullptr, *versionVerb = nullptr;
  CLI::App *explainVerb = nullptr, *diffVerb = nullptr;
  CLI::App *listVerb = nullptr, *showVerb = nullptr, *validateVerb = nullptr;
  CLI::App *importVerb = nullptr, *detectVerb = nullptr;
  CLI::App *calibrateVerb = nullptr;
};

/// Sets up --format, parses and says usage errors; nullopt: go on.
std::optional<int> parse(CLI::App &app, int argc, char **argv,
                         Console &console);

} // namespace monarch::cli
