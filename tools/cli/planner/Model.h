//===- Model.h - the MODEL argument, for the planner ----------------------===//
//
// A config.json (hyper-parameters: the graph builder writes the graph), a graph
// as JSON, or what the loader of this program reads.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "planner/families/ShapeWork.h"
#include "tools/cli/planner/Options.h"

namespace monarch::cli {

struct Model {
  /// One of the two.
  std::optional<planner::ModelShape> shape;
  std::optional<Graph> graph;
};

/// Reads --rules, once a process, before any graph.
std::optional<Error> readRules(const ModelOptions &options);

struct ModelRequest {
  const ModelOptions &options;
  std::optional<int64_t> sequence;
  /// "": as the model has it.
  std::string dtype;
  /// A config.json may be asked for --mode infer.
  bool mayServe = false;
};
Expected<Model> loadPlannerModel(const ModelRequest &request,
                                 const ModelLoader &loader);

Expected<planner::ModelWork> workOf(const Model &model,
                                    const planner::KernelStyle &style);
/// Of the whole model; built where the model is hyper-parameters.
Expected<Graph> graphOf(const Model &model);

} // namespace monarch::cli
