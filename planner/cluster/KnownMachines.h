//===- KnownMachines.h - devices and instance types by name ---------------===//
//
// Presets written from the step model's device table and from the instance
// types of clouds: the same figures as a device's own preset file would hold.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/support/Json.h"
#include "planner/cluster/Cluster.h"
#include "planner/step/Machine.h"

namespace monarch::planner {

struct InstanceType {
  std::string name;
  std::string cloud;
  std::string device;
  int64_t devices = 1;
  /// Of all NICs together, one direction; 0: not known.
  double nicBytesPerSecond = 0;
  int64_t nics = 1;
  /// Read in a source, not recalled.
  bool isVerified = false;
  std::string source;
};
/// planner/data/step/instances.json.
const std::vector<InstanceType> &instanceTypes();
/// By name, case ignored; null: none.
const InstanceType *findInstance(std::string_view name);
/// Up to four names that begin alike.
std::vector<std::string> nearInstances(std::string_view name);

/// A preset (device, levels, max_per_node, provenance) of this device;
/// `nicBytesPerSecond` of a whole node, 0: the device's usual box.
Json presetOf(const DeviceModel &device, int64_t perNode,
              double nicBytesPerSecond);

/// The step model's view of a cluster: figures of the document, and for what it
/// does not say those of the known device of that name.
Machine machineOf(const Cluster &cluster);

} // namespace monarch::planner
