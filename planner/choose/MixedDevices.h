//===- MixedDevices.h - pipelines over devices of several types -----------===//
//
// Clusters whose nodes hold different devices. Each stage runs on devices of
// one type; the layers are cut by what a layer takes on each type and by what
// each type's memory holds. The types follow each other along the pipeline in
// the order that is fastest. Using fewer types, or none but one, is part of the
// space: devices that stay idle are counted.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "planner/choose/ChooseLayout.h"

namespace monarch::planner {

/// Stages on devices of one part, in pipeline order.
struct StageRun {
  /// Index of the part.
  size_t part = 0;
  int64_t stages = 0;
  /// Devices of the part that no stage uses.
  int64_t idle = 0;
};

struct MixedChoice {
  /// `pp` over all parts, layers of each stage spelled out.
  StepLayout layout;
  /// Every part, the ones with no stages last.
  std::vector<StageRun> runs;
  StepTime time;
  /// Of the stage that is nearest to its device's limit.
  StepMemory memory;
  double usableBytes = 0;
  int64_t idleDevices = 0;
  double boundSeconds = 0;
  double gap() const { return 1 - boundSeconds / time.seconds; }
  int64_t bounded = 0, priced = 0;
};

/// `parts`: machines of one device type each; their nodes share one network.
/// Pins hold for the whole. `usesAll`: every part has a stage. Errors as
/// chooseLayout's.
Expected<MixedChoice> chooseMixedLayout(const ModelWork &work,
                                        const std::vector<Machine> &parts,
                                        const Target &target,
                                        const LayoutRequest &request,
                                        bool usesAll = false);

/// The choice beside the best that uses every part, and those that leave one
/// out: what a slow part is worth.
struct MixedComparison {
  MixedChoice best;
  struct Other {
    /// Index of the part that is left out; none: every part has stages.
    std::optional<size_t> without;
    /// 0: none fits.
    double seconds = 0;
  };
  std::vector<Other> others;
};
Expected<MixedComparison> compareMixed(const ModelWork &work,
                                       const std::vector<Machine> &parts,
                                       const Target &target,
                                       const LayoutRequest &request);
std::string summarize(const MixedComparison &comparison,
                      const std::vector<Machine> &parts);
Json toJson(const MixedComparison &comparison,
            const std::vector<Machine> &parts);

std::string summarize(const MixedChoice &choice,
                      const std::vector<Machine> &parts);

} // namespace monarch::planner
