//===- Fit.h - the fitted constants, from calibrate rows ------------------===//
//
// Weighted least squares on log residuals by damped Gauss-Newton, with large
// residuals counted linearly and a weak pull to the middle of each range.
// Deterministic: fixed start, fixed number of steps, numeric derivatives.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "bench/ground_truth/Predict.h"

namespace monarch::bench {

/// `rows` are all that is fitted to. The start is what is built in.
planner::Constants fit(const Predictor &predictor,
                       const planner::Constants &start);

} // namespace monarch::bench
