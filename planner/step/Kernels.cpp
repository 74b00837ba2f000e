//===- Kernels.cpp - seconds of kernels on a device -----------------------===//
#include "planner/step/Kernels.h"

#include <algorithm>
#include <cmath>

namespace monarch::planner {

namespace {

/// Rate of a fused attention over the best product rate, for wide heads.
double fusedShare(AttentionKernel kernel, const DeviceModel &device,
                  const Constants &constants) {
  // Kernels written for the Ampere instruction set reach less of what later
  // devices can do.
  constexpr double OldInstructions = 0.60, SecondFlash = 0.68;
  bool isLater = device.generation >= Generation::Hopper;
  double own = isLater ? OldInstructions : 1;
  switch (kernel) {
  case AttentionKernel::Flash1:
    return constants.flashShare * own;
  case AttentionKernel::Flash2:
    return SecondFlash * own;
  default:
    return SecondFlash;
  }
}

} // namespace

double Kernels::product(double batch, double m, double n, double k,
                        Precision precision, double resultBytes) const {
  const bool isFp8 = precision == Precision::Fp8;
  const double rate = (isFp8 ? device.fp8CeilingFlops : device.ceilingFlops) *
                      constants.productShare * device.sustained;
  const double units = static_cast<double>(device.multiprocessors);
  const double ramp = constants.tileRamp * (isFp8 ? 2 : 1);
  // Tiles of 128 x 256 in waves over the multiprocessors; an edge wastes half a
  // tile at most, and few rows take narrow tiles.
  constexpr double Edge = 128;
  const double rows = m < Edge / 2 ? m / Edge : std::ceil(m / Edge);
  const double tiles = batch * rows * std::ceil(n / Edge) / 2;
  const double tileFlops = 2 * Edge * 2 * Edge * (k + ramp);
  const double compute =
      (tiles / units + constants.waveLoss) * tileFlops * units / rate;
  double bytes =
      batch * ((m * k + k * n) * (isFp8 ? 1 : 2) + m * n * resultBytes);
  return std::max(compute, memory(bytes)) + constants.kernelSeconds;
}

Kernels::AttentionSeconds Kernels::attention(AttentionKernel kernel,
                                             double heads, double queries,
                                             double keys, double queryDim,
                                             double valueDim) const {
  const double gap = constants.kernelSeconds;
  if (kernel != AttentionKernel::Spelled) {
    // Half of the square: the triangle. Narrow heads fill fewer lanes.
    double flops = heads * queries * keys * (queryDim + valueDim);
    double rate = device.ceilingFlops * fusedShare(kernel, device, constants) *
                  (valueDim / (valueDim + 16) * 1.125);
    double forward = flops / rate;
    // Five products instead of two, and their reload.
    return {forward + 2 * gap, 2.5 * 1.12 * forward + 4 * gap};
  }
  // Scores in memory: written, scaled and masked, normalised, dropped; two
  // bytes each, a mask of one.
  constexpr double ScoreBytes = 11;
  double scores = heads * queries * keys;
  double wide = product(heads, queries, keys, queryDim, Precision::Half);
  double deep = product(heads, queries, valueDim, keys, Precision::Half);
  AttentionSeconds time;
  time.forward = wide + deep + memory(scores * ScoreBytes) + 2 * gap;
  time.backward = wide + 3 * deep +
                  memory(scores * ScoreBytes * constants.pointwiseTraffic) +
                  2 * gap;
  if (std::fmod(queryDim, 8) != 0) {
    // Sizes that the matrix units cannot take fall to the vector units.
    constexpr double VectorShare = 0.6;
    double flops = 4 * scores * queryDim;
    double extra = flops / (device.vectorFlops * VectorShare);
    time.forward += extra;
    time.backward += 2 * extra;
  }
  return time;
}

} // namespace monarch::planner
