//===- Band.h - how sure a prediction is ----------------------------------===//
//
// Half the width of the band that holds nine of ten measurements, as a share of
// the prediction. The base and what waiting and a slow host add come from
// calibrate rows predicted without their own source; what calibrate rows hardly
// have (experts, FP8, context parallelism, devices without a measured rate) is
// set.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "planner/step/StepTime.h"

namespace monarch::planner {

struct BandTerms {
  /// Standard deviations: of all predictions; for a step that is all waiting
  /// and reduction; for one that is all host.
  double base = 0, unsteady = 0, host = 0;
  /// Added where they apply.
  double experts = 0, fp8 = 0, context = 0, unmeasured = 0, open = 0,
         generation = 0;
};
/// planner/data/step/constants.json.
const BandTerms &builtInBand();

/// What a prediction depends on beyond its layout.
struct BandFacts {
  double unsteadyShare = 0, hostShare = 0;
  bool hasExperts = false, isFp8 = false, hasContext = false,
       isUnmeasured = false, isOpen = false, isLateGeneration = false;
};
BandFacts bandFacts(const StepTime &time, const StepLayout &layout,
                    const ModelWork &work, const Machine &machine, bool isOpen);
double bandHalfWidth(const BandFacts &facts, const BandTerms &terms);

} // namespace monarch::planner
