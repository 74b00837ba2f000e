//===- Resolve.h - from decisions to structure ----------------------------===//
//
// Turns decisions into the program that is priced, emitted and run: derives
// every layout, writes each reshard once per (value, layout, stage, phase),
// expands local bodies and reshards into ATen calls and collectives, places
// sends, frees, the step and the schedule. Deterministic. Takes any legal plan.
// No later pass creates, drops or merges a collective.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "planner/plan/Plan.h"

namespace monarch::planner {

/// A group of consecutive instructions of one segment with one meaning in the
/// global graph; what the dist dialect shows before partitioning.
struct ResolvedStep {
  enum class Kind : uint8_t {
    Op,       ///< op, under operandLayouts and resultLayouts
    Reshard,  ///< value from layout to layout
    Transfer, ///< value to or from peerStage
    Leaf,     ///< reads a leaf into this segment (slice of an input, ...)
    Finish    ///< counts, sums of gradients and of the loss, buffers, updates
  };
  Kind kind = Kind::Op;
  SegmentKind segment = SegmentKind::Forward;
  /// [begin, end) in the segment's instructions (frees included).
  size_t begin = 0, end = 0;
  OpId op = None;
  ValueId value = None;
  /// `from` is also the layout in which a Finish of a unit reads its value.
  Layout from, to;
  std::vector<Layout> operandLayouts, resultLayouts;
  int peerStage = -1;
  /// The program values that the step makes: one per result of the op (None:
  /// undefined), one of a reshard, of what arrives and of a reciprocal count.
  std::vector<int32_t> made;
};

struct Resolved {
  Program program;                              // predicted* filled
  std::vector<std::vector<ResolvedStep>> steps; // per stage, in order
  /// Home layout and stage of every value that has one.
  std::vector<Layout> layout;
  std::vector<int> stage;
  /// "aten::topk kept whole: 3 ops", axes that an op could not use, ...
  std::vector<std::string> remarks;
};

Expected<Resolved> resolve(const StrategySpace &space,
                           const Decisions &decisions);
/// The same, but its program does not say of which model it is or where its ops
/// come from: for search, where a digest of the graph for each plan would cost
/// as much as its price.
Expected<Resolved> resolveToPrice(const StrategySpace &space,
                                  const Decisions &decisions);

} // namespace monarch::planner
