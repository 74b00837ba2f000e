//===- Calibrate.cpp - a cluster's rates from measured steps --------------===//
#include "planner/cluster/Calibrate.h"

#include "planner/cluster/KnownMachines.h"

#include <cmath>

namespace monarch::planner {

namespace {

/// Standard deviations of logarithms: of a prediction with the right rates, and
/// of rates before anything was measured.
constexpr double OfPrediction = 0.003, OfCompute = 0.15, OfLinks = 0.3,
                 OfNetwork = 0.4;
/// Rates are looked for between a quarter and four times.
constexpr double Widest = 1.3862943611198906;

Machine scaled(Machine machine, const Calibration &factors) {
  machine.device.ceilingFlops *= factors.compute;
  machine.device.fp8CeilingFlops *= factors.compute;
  machine.device.memoryBytesPerSecond *= factors.compute;
  machine.device.linkBytesPerSecond *= factors.links;
  machine.nodeNicBytesPerSecond *= factors.network;
  return machine;
}

double predict(const Machine &machine, const Calibration &factors,
               const MeasuredStep &step) {
  const Machine own = scaled(machine, factors);
  return StepModel(step.work, own, step.target, builtInConstants())
      .price(step.layout)
      .seconds;
}

double square(double value) { return value * value; }

double misfit(const Machine &machine, const Calibration &factors,
              const std::vector<MeasuredStep> &steps) {
  double sum = square(std::log(factors.compute) / OfCompute) +
               square(std::log(factors.links) / OfLinks) +
               square(std::log(factors.network) / OfNetwork);
  for (const MeasuredStep &step : steps)
    sum += square(std::log(predict(machine, factors, step) / step.seconds) /
                  OfPrediction);
  return sum;
}

} // namespace

CalibrationFit calibrate(const Cluster &cluster,
                         const std::vector<MeasuredStep> &steps) {
  Machine machine = machineOf(cluster);
  const Calibration &old = cluster.calibration;
  machine = scaled(machine, {1 / old.compute, 1 / old.links, 1 / old.network});
  CalibrationFit fit;
  for (const MeasuredStep &step : steps)
    fit.before.push_back(predict(machine, {}, step));
  // Golden sections along one factor after another.
  constexpr double Golden = 0.6180339887498949;
  constexpr int Rounds = 40, Sections = 40;
  for (int round = 0; round < Rounds; ++round)
    for (double Calibration::*factor :
         {&Calibration::compute, &Calibration::links, &Calibration::network}) {
      auto at = [&](double logarithm) {
        Calibration trial = fit.factors;
        trial.*factor = std::exp(logarithm);
        return misfit(machine, trial, steps);
      };
      double low = -Widest, high = Widest;
      for (int section = 0; section < Sections; ++section) {
        const double left = high - Golden * (high - low);
        const double right = low + Golden * (high - low);
        (at(left) <= at(right) ? high : low) =
            at(left) <= at(right) ? right : left;
      }
      fit.factors.*factor = std::exp((low + high) / 2);
    }
  for (const MeasuredStep &step : steps)
    fit.after.push_back(predict(machine, fit.factors, step));
  return fit;
}

} // namespace monarch::planner
