//===- Plan.h - decisions about a graph on a mesh -------------------------===//
//
// In memory a plan is dense: one choice per op and axis. On disk
// (monarch.plan/1) it is glob rules by module path, most specific first:
// expand(compress(d)) == d. The same file carries the inputs with digests, the
// prediction, the alternatives with the reason each lost, the gap and
// diagnostics.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/program/Program.h"
#include "core/strategy/Strategies.h"

namespace monarch::planner {

/// Choice index: the op follows its neighbour (views, casts, sums of
/// cotangents).
inline constexpr int Follow = -1;

/// In which order a stage runs the forwards and backwards of its units.
enum class ScheduleKind : uint8_t { OneFOneB, GPipe };
std::string_view toString(ScheduleKind kind);

struct Decisions {
  /// Axes of one stage, data axes first. May be empty (one rank per stage).
  Mesh mesh;
  OffsetTables tables;
  int stages = 1;
  /// Rows per unit and in the global batch; units = globalRows / unitRows are
  /// handed to the data replicas in contiguous blocks.
  int64_t unitRows = 1;
  int64_t globalRows = 1;
  OptimizerKind optimizer = OptimizerKind::SGD;
  /// Parameters in bfloat16 and float16 that are trained have float32 master
  /// copies, accumulators and optimizer states at their owners, and their
  /// gradients are reduced in float32.
  bool masterWeights = false;
  ScheduleKind schedule = ScheduleKind::OneFOneB;

  /// Per op (graph order). Forward ops: at least the stage of each producer.
  /// Ignored for backward ops (their forward op's), for sums of cotangents (the
  /// largest of their consumers') and for cloned ops.
  std::vector<int> stage;
  /// Per op and mesh axis: index into StrategySpace::choices or Follow. Data
  /// axes are always 0 ("whole"). Entries of backward ops are ignored, those of
  /// sums of cotangents are not.
  std::vector<std::vector<int>> choice;
  /// Per forward op and axis: where the backward of an op that is not split
  /// gets a partial cotangent, it passes it on (linear ops) instead of reducing
  /// it.
  std::vector<std::vector<bool>> passPartialCotangent;
  /// Per forward op: operands that the backward reads are kept as the forward
  /// used them (gathered); false: fetched again from their home layout.
  std::vector<bool> keepGathered;
  /// Per parameter (graph order), on all axes.
  std::vector<Layout> parameterLayout;
};
bool operator==(const Decisions &a, const Decisions &b);

/// Everything whole on one rank, one stage: the one-process meaning.
Decisions oneProcess(const Graph &graph, const StrategySpace &space,
                     int64_t globalRows);

/// The forward changes buffers: units run in order, on one replica.
bool carriesBuffers(const Graph &graph);

/// Legal: sizes match, choices exist, data axes whole, stages acyclic. All
/// violations.
std::vector<Error> check(const Decisions &decisions,
                         const StrategySpace &space);

} // namespace monarch::planner
