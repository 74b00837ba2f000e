//===- Predict.h - predictions for rows, and their errors -----------------===//
#pragma once

#include "bench/ground_truth/Row.h"
#include "planner/families/ShapeWork.h"
#include "planner/step/Band.h"

namespace monarch::bench {

/// Work of each distinct (model, kernel style), made once from its graph.
class Predictor {
public:
  explicit Predictor(const std::vector<Row> &rows);

  struct Prediction {
    double seconds = 0;
    planner::StepTime time;
    bool isOpen = false;
  };
  /// Geometric mean over the layouts within a tenth of the fastest.
  Prediction predict(size_t row, const planner::Constants &constants) const;
  struct Residual {
    size_t row;
    /// ln(predicted / measured).
    double value;
  };
  /// One a row, two for a layer.
  std::vector<Residual> residuals(const planner::Constants &constants) const;
  const planner::ModelWork &workOf(size_t row) const {
    return works[workIndex[row]];
  }

  const std::vector<Row> &rows;

private:
  std::vector<planner::ModelWork> works;
  std::vector<size_t> workIndex;
};

struct Errors {
  size_t count = 0;
  /// Percent of the measurement.
  double mean = 0, median = 0, p90 = 0, max = 0, bias = 0;
};
Errors errorsOf(const std::vector<double> &residuals);

} // namespace monarch::bench
