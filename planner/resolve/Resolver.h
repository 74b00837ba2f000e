//===- Resolver.h - the state of one resolve ------------------------------===//
//
// Walks the graph's ops in order, forward then backward, and writes each into
// the segment of its stage. Every stage keeps the *copies* that it holds of a
// value: the home copy, where the value is made or arrives, and those made by
// reshards. A copy made in Forward serves Backward too (it is saved); none is
// made twice.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/layout/Reshard.h"
#include "core/registry/Lowering.h"
#include "planner/resolve/DeriveLayouts.h"
#include "planner/resolve/Resolve.h"

#include <map>
#include <set>

namespace monarch::planner {

struct Copy {
  Layout layout;
  Local local;
  SegmentKind segment = SegmentKind::Forward;
  bool home = false;
  /// Leaves that live through the step: any segment may read them.
  bool everywhere = false;
};

struct Stage {
  Stage(Role &role) : writer(role) {}
  RoleWriter writer;
  std::map<ValueId, std::vector<Copy>> copies;
  std::vector<ResolvedStep> steps;
  /// Inputs by value and layout: the same slice is read once per segment.
  std::map<std::pair<ValueId, Layout>, Local> inputs;
};

class Resolver {
public:
  Resolver(const StrategySpace &space, const Decisions &decisions);
  Expected<Resolved> run();

private:
  // Resolve.cpp: the walk.
  void lowerOp(OpId op, int stage, SegmentKind segment);
  void accumulateResults(OpId op);
  std::optional<Error> updateBuffers();
  void keepUnreadBuffers();

  // Fetch.cpp: a value under a layout, at a stage, in a segment.
  Local fetch(ValueId value, const Layout &layout, int stage,
              SegmentKind segment, bool reuseGathered = true);
  const Copy *findUsable(ValueId value, const Layout &layout, int stage,
                         SegmentKind segment, bool reuseGathered);
  void materialize(ValueId value, const Layout &layout, int stage,
                   SegmentKind segment);
  void materializeLeaf(ValueId value, const Layout &layout, int stage,
                       SegmentKind segment);
  void transfer(ValueId value, int stage, SegmentKind segment);
  /// Sends from one stage to another in a segment; returns what arrives.
  Local sendReceive(Local local, int from, int to, SegmentKind segment);
  Local parameterAt(size_t parameter, int stage);
  int64_t syntheticBound(ValueId input) const;

  // Step.cpp: counts before, gradients, norm and updates after the units.
  void writeCounts();
  void accumulate(size_t parameter, ValueId gradient);
  void accumulateLoss();
  void finishStep();
  void reduceGradient(size_t parameter);
  void writeSquaredNorm();
  void writeUpdates();
  Local carriedZeros(int stage, ValueId like, const Layout &layout,
                     const std::string &name, DType type);
  /// The optimizer updates a float32 copy of the parameter.
  bool hasMaster(size_t parameter) const;
  void addInPlace(int stage, Local sum, Local summand);
  void copyInto(int stage, Local held, Local fresh);
  /// The layout with every data axis partial: what units leave behind.
  Layout partialOverUnits(Layout layout) const;

  // Schedule.cpp
  void writeSchedules();

  /// Instructions of a segment, made the writer's target.
  std::vector<Instruction> &open(int stage, SegmentKind segment, OpId op);
  template <typename Write>
  auto step(int stage, ResolvedStep step, Write write);

  const StrategySpace &space;
  const Decisions &decisions;
  const Graph &graph;
  const Mesh &mesh;
  ReshardCache reshards;
  DerivedLayouts derived;
  Resolved result;
  Program &program;
  std::vector<Stage> stages;
  /// Per parameter: the stage that owns it.
  std::vector<int> owner;
  /// Per stage: local of each parameter read there.
  std::vector<std::map<size_t, Local>> parameterLocals;
  struct Accumulator {
    int stage;
    Layout layout; // data axes partial
    Local local;
  };
  std::vector<std::vector<Accumulator>> accumulators; // per parameter
  std::vector<Local> gradients;                       // per parameter, at rest
  std::map<ValueId, std::vector<size_t>> gradientOf;  // value -> parameters
  std::optional<Accumulator> loss;
  std::map<std::pair<int, size_t>, Local> inverseCounts; // stage, count
  int64_t nextTag = 0;
};

/// Lifetimes, buffer reuse and Free instructions of a role whose segments are
/// written; keeps the steps' ranges right (Lifetimes.cpp).
void finishLifetimes(Role &role, std::vector<ResolvedStep> &steps);

inline Segment &segmentOf(Role &role, SegmentKind kind) {
  return role.segments[static_cast<size_t>(kind)];
}

template <typename Write>
auto Resolver::step(int stage, ResolvedStep step, Write write) {
  const size_t begin =
      segmentOf(program.roles[stage], step.segment).instructions.size();
  auto written = write();
  step.begin = begin;
  step.end = segmentOf(program.roles[stage], step.segment).instructions.size();
  stages[stage].steps.push_back(std::move(step));
  return written;
}

} // namespace monarch::planner
