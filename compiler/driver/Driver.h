//===- Driver.h - from a model and a plan to program files ----------------===//
//
// Joins the phases: import -> aten -> analyze gives the graph; resolve ->
// partition -> emit -> verify gives the program. The command line sees this
// header alone; neither MLIR nor LibTorch shows in it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/program/Program.h"
#include "planner/plan/PlanFile.h"

namespace monarch {

struct ImportOptions; // compiler/import/Import.h
struct FileFacts;

/// Where the IR after each phase is written, numbered in the order of the
/// phases: "1-aten.mlir", "2-aten-live.mlir" (loadGraph), "3-dist.mlir",
/// "4-dist-local.mlir" (compile). "": nowhere.
struct DumpOptions {
  std::string directory;
};

/// The joint graph of a model file: `.pt2` through import and aten, or
/// `monarch.graph/1` as it stands: of `options` it takes the rows of the unit
/// alone, its loss and shapes are in the file. `facts` is filled where given,
/// for a model file.
Expected<Graph> loadGraph(const std::string &modelPath,
                          const ImportOptions &options,
                          const DumpOptions &dump = {},
                          FileFacts *facts = nullptr);

struct CompileOptions {
  /// Made, or replaced if it holds a program; nothing is left half written.
  std::string outDirectory;
  DumpOptions dump;
};

struct Compiled {
  Program program;
  /// The one-process meaning of the same model and batch: one rank, all units.
  /// Written to outDirectory/one_process.
  Program oneProcess;
  /// "aten::topk kept whole: 3 ops", ...
  std::vector<std::string> remarks;
};

/// Resolves, partitions, emits, proves and writes. The graph of `space` has
/// `decisions.unitRows` rows; `planDigest` goes into the manifest.
Expected<Compiled> compile(const StrategySpace &space,
                           const planner::Decisions &decisions,
                           const std::string &planDigest,
                           const CompileOptions &options);

/// The same from a plan file and the graph as loaded: brings the graph to the
/// plan's unit and refuses (MP2211, stale) a plan of another model.
Expected<Compiled> compile(const planner::PlanFile &plan, const Graph &graph,
                           const CompileOptions &options);

/// The global view of a plan: one rank runs the graph as the partitioned module
/// wires it, with reshards and transfers as identity. Where a program differs
/// from its one-process meaning and this does not, a reshard or a local body is
/// at fault; where this differs too, the wiring of steps.
struct GlobalView {
  Graph graph;
  Program program;
};
Expected<GlobalView> globalView(const StrategySpace &space,
                                const planner::Decisions &decisions);

} // namespace monarch
