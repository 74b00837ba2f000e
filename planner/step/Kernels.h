//===- Kernels.h - seconds of kernels on a device -------------------------===//
//
// A product runs in waves of tiles over the multiprocessors, or as fast as its
// bytes come; attention is fused or spelled out; all else is memory traffic.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "planner/step/Constants.h"
#include "planner/step/Machine.h"
#include "planner/step/Target.h"

namespace monarch::planner {

enum class Precision : uint8_t { Half, Fp8 };

class Kernels {
public:
  Kernels(const DeviceModel &device, const Constants &constants)
      : device(device), constants(constants) {}

  /// batch x [m, k] x [k, n]; `resultBytes` an element: 8 where the product
  /// adds into a 32-bit accumulator.
  double product(double batch, double m, double n, double k,
                 Precision precision, double resultBytes = 2) const;
  /// Traffic at the sustained rate of the memory.
  double memory(double bytes) const {
    return bytes / (device.memoryBytesPerSecond * constants.memoryShare);
  }
  struct AttentionSeconds {
    double forward = 0, backward = 0;
  };
  /// `heads` over all rows; the queries are `queries` of `keys` long.
  AttentionSeconds attention(AttentionKernel kernel, double heads,
                             double queries, double keys, double queryDim,
                             double valueDim) const;

  const DeviceModel &device;
  const Constants &constants;
};

} // namespace monarch::planner
