//===- LayoutSearch.h - best first through the space of layouts -----------===//
//
// Degrees are opened in the order of a bound that all their variants share.
// Each variant of an open one gets its own bound, from the step model itself,
// asked for stages at least as good as any cut of the layers can make them.
// What the bound does not rule out is cut, checked for memory, priced and,
// where that may matter, simulated; cutting it bounds it anew, for the cuts
// that fit. The search ends where no bound can beat the last of the families
// wanted.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "planner/choose/LayoutSpace.h"

#include <array>
#include <limits>
#include <map>

namespace monarch::planner {

class LayoutSearch {
public:
  LayoutSearch(const ModelWork &work, const Machine &machine,
               const Target &target, const LayoutRequest &request);

  struct Found {
    StepLayout layout;
    /// No cut of this variant that fits takes less than the bound.
    double seconds = 0, bound = 0;
    /// Place in the space: ties go to the first.
    size_t degrees = 0, variant = 0;
    bool isBefore(const Found &other) const {
      return std::tie(seconds, degrees, variant) <
             std::tie(other.seconds, other.degrees, other.variant);
    }
  };
  struct Result {
    /// Best of each family, the fastest first.
    std::vector<Found> families;
    double boundSeconds = 0;
    /// The lowest bound of what memory rules out, with the even cut.
    std::optional<Found> tooLarge;
    /// Of all that does not fit, what comes closest; bytes over.
    std::optional<Found> closest;
    double closestOver = 0;
    int64_t candidates = 0, bounded = 0, priced = 0, simulated = 0,
            overMemory = 0;
    bool isComplete = true;
  };
  Result run() { return run(request.alternatives + 1, false); }
  /// Ends with the first layout that fits.
  Result anyThatFits() { return run(1, true); }

  /// Never above `price`; for tests and figures.
  double bound(const StepLayout &degrees, Recompute recompute,
               const LayoutVariant &variant);
  /// With the best cut; none if nothing fits.
  std::optional<Found> price(const StepLayout &degrees, Recompute recompute,
                             const LayoutVariant &variant);
  /// Bounds all candidates of the space, as `run` would if it ruled none out.
  int64_t boundAll();
  const LayoutSpace &space() const { return layouts; }

private:
  /// What all variants of degrees share under one recompute mode.
  struct Shared {
    const StepModel::Blocks *blocks = nullptr;
    LayerBytes bytes, chunkedBytes;
    /// Sums over all layers, and the least and most of one.
    double forward = 0, backward = 0;
    double leastSeconds = 0, mostForward = 0, mostBackward = 0;
    StageFacts relaxed;
    /// Of folded pipelines, whose first stage has the head as well.
    StageFacts folded;
    /// The most that forward and backward make of a stage's seconds.
    double forwardShare = 0, backwardShare = 0;
    /// What relaxed facts become for each count of layers on the first stage:
    /// for fully sharded targets, whose gathers that stage exposes.
    std::vector<StageFacts> firsts;
  };
  /// Counts of layers on the first stage.
  struct FirstLayers {
    double least = 0, below = std::numeric_limits<double>::infinity();
  };
  struct LayerElements {
    double dense = 0, experts = 0;
    double allDense = 0, allExperts = 0;
    double leastDense = 0, leastExperts = 0;
    /// That some stage has at least.
    double mostDense = 0, mostExperts = 0;
  };
  Result run(size_t families, bool isFirstEnough);
  Shared sharedOf(const StepLayout &degrees, Recompute recompute) const;
  /// Lower bounds of the facts of any cut, without sends.
  void relax(const StepLayout &degrees, Shared &shared) const;
  void addFirsts(const StepLayout &degrees, Shared &shared) const;
  double mostOf(size_t kind, int64_t stages) const;
  double slowestOf(const StepLayout &degrees, const Shared &shared) const;
  double degreesBound(const StepLayout &degrees, const Shared &shared) const;
  double bound(const StepLayout &layout, const Shared &shared) const;
  /// Of the cuts whose slowest stage takes no less than that of the facts,
  /// sends included.
  double boundOf(const StepLayout &layout, const Shared &shared,
                 StageFacts facts, double sends, FirstLayers first) const;
  /// Cuts are improved only where that can come below the limit.
  std::optional<Found> price(StepLayout &layout, const Shared &shared,
                             double limit);
  /// By event simulation; layouts that differ in what the pipeline does not see
  /// share one.
  double pipelineSeconds(const StepLayout &layout);
  /// Bytes over what may be used, of the fullest stage; at most 0: fits.
  double bytesOver(const StepLayout &layout, const Shared &shared) const;
  /// The cut with the fastest slowest stage of those that fit and whose stages
  /// hold no more elements.
  std::vector<int64_t> bestCut(const StepLayout &layout, const Shared &shared,
                               double mostElements) const;
  double mostElements(const StepLayout &layout, std::vector<int64_t> cut) const;
  StageHolds holdsOf(const StepLayout &layout, int64_t stage, int64_t first,
                     int64_t count) const;
  static void apply(const LayoutVariant &variant, StepLayout &layout);

  const ModelWork &work;
  const Target &target;
  const decltype(Machine::slowRanks) &slowRanks;
  const LayoutRequest &request;
  LayoutSpace layouts;
  StepModel model;
  MemoryModel memory;
  double usable;
  double stepSeconds;
  std::vector<int64_t> kindCounts;
  /// Of the variant that was priced last: bytes over for its even cut.
  double lastOver = 0;
  using PipelineKey = std::tuple<std::array<int64_t, 7>, Recompute, bool,
                                 Schedule, std::vector<int64_t>>;
  std::map<PipelineKey, double> pipelines;
};

} // namespace monarch::planner
