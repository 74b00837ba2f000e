//===- Report.h - bands and choices on published measurements -------------===//
#pragma once

#include "bench/ground_truth/Predict.h"

namespace monarch::bench {

/// Share of rows inside their band, and the mean width, by split.
void reportBand(const Predictor &predictor, const planner::Constants &constants,
                const planner::BandTerms &terms);
/// Sets of rows that differ in their layout alone: what the predicted best one
/// costs over the measured best, and rank correlation.
void reportChoices(const Predictor &predictor,
                   const planner::Constants &constants);
/// Base, unsteady and host terms from calibrate rows, each source predicted by
/// constants fitted to the others.
planner::BandTerms estimateBand(const std::vector<Row> &rows,
                                const planner::Constants &start);

} // namespace monarch::bench
