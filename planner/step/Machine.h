//===- Machine.h - a cluster as the step model sees it --------------------===//
//
// What a device sustains, how many share fast links, and what leaves a node.
// Devices come from planner/data/step/devices.json; where a device has no
// measured product rate it gets its peers' share of the peak and says so.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/support/Error.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace monarch::planner {

enum class Generation : uint8_t {
  Volta,
  Turing,
  Ampere,
  Ada,
  Hopper,
  Blackwell
};

struct DeviceModel {
  std::string name;
  Generation generation = Generation::Ampere;
  double memoryBytes = 0;
  double memoryBytesPerSecond = 0;
  /// Dense 16-bit products: what the data sheet says; the best that was
  /// measured for any shape.
  double peakFlops = 0;
  double ceilingFlops = 0;
  double fp8PeakFlops = 0;
  double fp8CeilingFlops = 0;
  double vectorFlops = 0;
  int64_t multiprocessors = 0;
  /// Clock in long runs under the power cap, over that of short ones.
  double sustained = 1;
  /// Links between devices of one box, one direction.
  double linkBytesPerSecond = 0;
  int64_t linkDomain = 8;
  /// The usual box: bytes/s of its NICs together, and how many.
  double nodeNicBytesPerSecond = 0;
  int64_t nics = 8;
  /// The ceiling was measured on this device.
  bool isMeasured = true;
  bool hasNvlink = true;
  std::string source;
  /// Figures that were recalled, not read: "all", or their names.
  std::string unverified;
};

const std::vector<DeviceModel> &deviceModels();
/// By name or alias, case and generation digits ignored; MP1103 with near
/// matches, or with both sizes where "A100" could be either.
Expected<DeviceModel> findDevice(std::string_view name);
/// Names a device, or the beginning of several.
bool namesDevices(std::string_view name);

struct Machine {
  DeviceModel device;
  int64_t devices = 1;
  int64_t devicesPerNode = 8;
  double nodeNicBytesPerSecond = 0;
  int64_t nics = 8;
  /// Ranks whose compute takes that many times as long.
  std::map<int64_t, double> slowRanks;
};

/// That many of a device in its usual boxes, NICs and all.
Machine usualBoxes(const DeviceModel &device, int64_t devices);

} // namespace monarch::planner
