//===- Predict.cpp - predictions for rows, and their errors ---------------===//
#include "bench/ground_truth/Predict.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numeric>

namespace monarch::bench {

using namespace planner;

namespace {

struct WorkKey {
  ModelShape model;
  KernelStyle style;
  bool operator==(const WorkKey &other) const {
    return model == other.model && style.fusion == other.style.fusion &&
           style.hasOwnModules == other.style.hasOwnModules;
  }
};

} // namespace

Predictor::Predictor(const std::vector<Row> &rows) : rows(rows) {
  std::vector<WorkKey> keys;
  for (const Row &row : rows) {
    WorkKey key{row.model, row.target.style};
    auto found = std::find(keys.begin(), keys.end(), key);
    workIndex.push_back(static_cast<size_t>(found - keys.begin()));
    if (found != keys.end())
      continue;
    keys.push_back(key);
    auto work = planner::workOf(row.model, row.target.style);
    if (!work) {
      fmt::print(stderr, "{}\n", toString(work.error()));
      std::exit(static_cast<int>(work.error().code));
    }
    works.push_back(*work);
  }
}

Predictor::Prediction Predictor::predict(size_t index,
                                         const Constants &constants) const {
  const Row &row = rows[index];
  StepModel model(workOf(index), row.machine, row.target, constants,
                  row.source->tensorDelaySeconds);
  Prediction prediction;
  std::vector<StepTime> times;
  for (const StepLayout &layout : row.layouts)
    times.push_back(model.simulated(layout));
  auto fastest = std::min_element(times.begin(), times.end(),
                                  [](const StepTime &a, const StepTime &b) {
                                    return a.seconds < b.seconds;
                                  });
  double sum = 0, count = 0;
  for (const StepTime &time : times)
    if (time.seconds <= 1.1 * fastest->seconds) {
      sum += std::log(time.seconds);
      ++count;
    }
  prediction.seconds = std::exp(sum / count);
  prediction.time = *fastest;
  prediction.isOpen = row.layouts.size() > 1;
  return prediction;
}

std::vector<Predictor::Residual>
Predictor::residuals(const Constants &constants) const {
  std::vector<Residual> list;
  for (size_t index = 0; index < rows.size(); ++index) {
    const Row &row = rows[index];
    Prediction prediction = predict(index, constants);
    if (row.seconds > 0) {
      list.push_back({index, std::log(prediction.seconds / row.seconds)});
      continue;
    }
    const BlockTime &layer = prediction.time.layer;
    double forward = layer.forward + layer.forwardExchange;
    double again = 0;
    if (row.layouts[0].recompute == Recompute::Full)
      again = forward;
    if (row.layouts[0].recompute == Recompute::CoreAttention)
      again = layer.attentionForward;
    list.push_back({index, std::log(forward / row.layerForward)});
    list.push_back(
        {index, std::log((layer.backward + layer.backwardExchange + again) /
                         row.layerBackward)});
  }
  return list;
}

Errors errorsOf(const std::vector<double> &residuals) {
  Errors errors;
  errors.count = residuals.size();
  if (residuals.empty())
    return errors;
  std::vector<double> sizes;
  double sum = 0;
  for (double residual : residuals) {
    sizes.push_back(100 * std::abs(std::exp(residual) - 1));
    sum += residual;
  }
  std::sort(sizes.begin(), sizes.end());
  const size_t n = sizes.size();
  errors.mean =
      std::accumulate(sizes.begin(), sizes.end(), 0.0) / static_cast<double>(n);
  errors.median = (sizes[n / 2] + sizes[(n - 1) / 2]) / 2;
  errors.p90 =
      sizes[static_cast<size_t>(std::ceil(0.9 * static_cast<double>(n))) - 1];
  errors.max = sizes.back();
  errors.bias = 100 * (std::exp(sum / static_cast<double>(n)) - 1);
  return errors;
}

} // namespace monarch::bench
