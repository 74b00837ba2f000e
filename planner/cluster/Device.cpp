//===- Device.cpp - what a device sustains --------------------------------===//
#include "planner/cluster/Cluster.h"

#include <algorithm>

namespace monarch::planner {

int64_t Device::sustainedFlopsPerSecond(DType type) const {
  auto listed = peakFlopsPerSecond.find(type);
  int64_t peak = 0;
  if (listed != peakFlopsPerSecond.end())
    peak = listed->second;
  else
    for (const auto &[other, rate] : peakFlopsPerSecond)
      peak = peak == 0 ? rate : std::min(peak, rate);
  return static_cast<int64_t>(static_cast<__int128>(peak) * matmulEfficiency /
                              Million);
}

} // namespace monarch::planner
