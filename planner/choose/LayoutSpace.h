//===- LayoutSpace.h - every layout that a target can express -------------===//
//
// Two levels: degrees (with the micro-batch and sequence parallelism), of which
// there are hundreds, and for each the variants of schedule, recompute and
// sharding. Both in a fixed order; pins cut both.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "planner/choose/ChooseLayout.h"

namespace monarch::planner {

/// The fields of a layout that do not change what one layer costs.
struct LayoutVariant {
  int64_t chunks = 1;
  Schedule schedule = Schedule::OneForwardOneBackward;
  Sharding sharding = Sharding::None;
  int64_t shardGroup = 0;
  bool offloadsOptimizer = false;
};

class LayoutSpace {
public:
  LayoutSpace(const ModelWork &work, const Machine &machine,
              const Target &target, const LayoutRequest &request);

  /// Layouts with their degrees set and everything else plain.
  const std::vector<StepLayout> &degrees() const { return all; }
  const std::vector<Recompute> &recomputes() const { return recomputeModes; }
  /// Of layouts with these degrees.
  std::vector<LayoutVariant> variants(const StepLayout &degrees) const;
  /// Cuts that a variant may have beside the ones that a search optimises:
  /// layers of each stage, empty for even ones. Interleaved chunks are equal
  /// when embedding and head count as none, one or two layers.
  std::vector<std::vector<int64_t>> fixedCuts(const StepLayout &layout) const;
  /// No other value of this pin is in the space.
  bool hasOneValue(std::string_view name) const;
  /// One stage at a time may differ from the even cut by this many layers.
  static constexpr int64_t CutSlack = 2;
  bool hasFreeCuts(int64_t pp, int64_t chunks) const {
    return pp > 1 && chunks == 1 && request.pins.stageLayers.empty();
  }

private:
  void addDegrees(StepLayout layout);

  const ModelWork &work;
  const Machine &machine;
  const Target &target;
  const LayoutRequest &request;
  std::vector<StepLayout> all;
  std::vector<Recompute> recomputeModes;
};

std::vector<int64_t> divisorsOf(int64_t number);

} // namespace monarch::planner
