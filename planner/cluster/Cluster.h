//===- Cluster.h - the machine that a plan is for -------------------------===//
//
// One kind of device, nodes of equal size, and link levels innermost first. A
// cluster always comes from a document (monarch.cluster/1, a file or a preset),
// which it keeps: what the reader does not know is not lost when it is written
// again. All quantities are integers in base units.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/graph/Graph.h"

#include <map>

namespace monarch::planner {

/// Shares of peak figures are kept in millionths.
inline constexpr int64_t Million = 1'000'000;

struct Device {
  std::string name;
  int64_t memoryBytes = 0;
  /// Not for tensors: driver context, communication buffers.
  int64_t reservedBytes = 0;
  int64_t memoryBytesPerSecond = 0;
  int64_t memoryEfficiency = Million;
  std::map<DType, int64_t> peakFlopsPerSecond;
  int64_t matmulEfficiency = Million;
  /// Host time to start one call, and one collective.
  int64_t launchPicoseconds = 0;
  int64_t collectiveLaunchPicoseconds = 0;

  int64_t usableBytes() const { return memoryBytes - reservedBytes; }
  /// FLOP/s that a matrix product of this type sustains; a type that is not
  /// listed runs at the slowest listed rate.
  int64_t sustainedFlopsPerSecond(DType type) const;
};

struct LinkLevel {
  std::string name;
  /// Devices that this level joins; a multiple of the level inside it.
  int64_t size = 1;
  /// Per device, one direction.
  int64_t bytesPerSecond = 0;
  int64_t efficiency = Million;
  int64_t latencyPicoseconds = 0;
};

/// What measured steps say of the rates: factors on compute, on the links of a
/// node and on the network. Part of the efficiencies above.
struct Calibration {
  double compute = 1, links = 1, network = 1;
};

struct Cluster {
  std::string name;
  int64_t nodes = 1;
  int64_t devicesPerNode = 1;
  Device device;
  std::vector<LinkLevel> levels;
  Calibration calibration;
  /// Canonical text of the document that this was read from.
  std::string document;

  int64_t deviceCount() const { return nodes * devicesPerNode; }
};

/// `monarch.cluster/1`; comments are allowed. All problems in one error.
Expected<Cluster> readCluster(std::string_view text);
/// write(read(x)) == x for canonical x.
std::string writeCluster(const Cluster &cluster);
/// SHA-256 over the canonical document without name and provenance.
std::string digest(const Cluster &cluster);

/// "cpu:4", "H100-SXM-80GB" style names with counts
/// ("[NODESx]PER_NODExDEVICE").
Expected<Cluster> presetCluster(std::string_view name);
/// True when the text has the form of a preset rather than of a file name.
bool looksLikePreset(std::string_view name);
/// Names of device presets, sorted.
std::vector<std::string> presetDevices();
/// The same machine `factor` times as large: more nodes where a level joins
/// nodes, else more devices in the node.
Cluster scaled(const Cluster &cluster, int64_t factor);

} // namespace monarch::planner
