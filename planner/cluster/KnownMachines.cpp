//===- KnownMachines.cpp - devices and instance types by name -------------===//
#include "planner/cluster/KnownMachines.h"

#include "planner/step/Constants.h"
#include "planner/step/StepData.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>

namespace monarch::planner {

namespace {

std::string lower(std::string_view text) {
  std::string result;
  for (char c : text)
    result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

std::string rate(double bytesPerSecond) {
  return fmt::format("{:.6g}GB/s", bytesPerSecond / 1e9);
}
std::string flops(double perSecond) {
  return fmt::format("{:.6g}TFLOP/s", perSecond / 1e12);
}
std::string microseconds(double seconds) {
  return fmt::format("{:.6g}us", seconds * 1e6);
}

} // namespace

const std::vector<InstanceType> &instanceTypes() {
  static const std::vector<InstanceType> list = [] {
    std::vector<InstanceType> read;
    Json data = Json::parse(stepData("instances"));
    for (const Json &entry : data["instances"]) {
      constexpr double BytesPerGigabit = 1e9 / 8;
      InstanceType type;
      type.name = entry["name"];
      type.cloud = entry["cloud"];
      type.device = entry["device"];
      type.devices = entry["devices"];
      type.nicBytesPerSecond =
          entry.value("nic_gbits_per_s", 0.0) * BytesPerGigabit;
      type.nics = entry["nics"];
      type.isVerified = entry["confidence"] == "read";
      type.source = entry["source"];
      read.push_back(type);
    }
    return read;
  }();
  return list;
}

const InstanceType *findInstance(std::string_view name) {
  for (const InstanceType &type : instanceTypes())
    if (lower(type.name) == lower(name))
      return &type;
  return nullptr;
}

std::vector<std::string> nearInstances(std::string_view name) {
  const std::string wanted = lower(name);
  std::vector<std::pair<size_t, std::string>> near;
  for (const InstanceType &type : instanceTypes()) {
    const std::string own = lower(type.name);
    size_t same = 0;
    while (same < own.size() && same < wanted.size() &&
           own[same] == wanted[same])
      ++same;
    near.emplace_back(same, type.name);
  }
  std::stable_sort(near.begin(), near.end(),
                   [](auto &a, auto &b) { return a.first > b.first; });
  std::vector<std::string> names;
  for (size_t i = 0; i < near.size() && i < 4 && near[i].first >= 2; ++i)
    names.push_back(near[i].second);
  return names;
}

Json presetOf(const DeviceModel &device, int64_t perNode,
              double nicBytesPerSecond) {
  const Constants &constants = builtInConstants();
  const double nic =
      nicBytesPerSecond > 0 ? nicBytesPerSecond : device.nodeNicBytesPerSecond;
  constexpr double LargeMemory = 40e9;
  Json preset;
  Json &own = preset["device"];
  own["memory"] = fmt::format("{:.6g}GB", device.memoryBytes / 1e9);
  own["reserved"] = device.memoryBytes >= LargeMemory ? "3GB" : "1.5GB";
  own["memory_bw"] = rate(device.memoryBytesPerSecond);
  own["peak"]["float32"] = flops(device.vectorFlops);
  // Volta and Turing multiply in float16 alone.
  if (device.generation >= Generation::Ampere)
    own["peak"]["bfloat16"] = flops(device.peakFlops);
  own["peak"]["float16"] = flops(device.peakFlops);
  own["efficiency"]["matmul"] =
      rounded(device.ceilingFlops / device.peakFlops * constants.productShare *
              device.sustained);
  own["efficiency"]["memory"] = rounded(constants.memoryShare);
  own["launch"] = microseconds(constants.kernelSeconds);
  own["collective_launch"] = microseconds(constants.collectiveSeconds);
  constexpr int64_t UsualBox = 8;
  preset["max_per_node"] = std::max(device.linkDomain, UsualBox);
  Json link, net;
  link["name"] = device.hasNvlink ? "nvlink" : "pcie";
  link["bw"] = rate(device.linkBytesPerSecond);
  link["latency"] = microseconds(constants.hopSeconds);
  link["efficiency"] = rounded(constants.linkShare);
  net["name"] = "nic";
  net["bw"] = rate(nic / static_cast<double>(perNode));
  net["latency"] = microseconds(constants.nodeHopSeconds);
  net["efficiency"] = rounded(constants.nicShare);
  preset["levels"] = Json::array({link, net});
  Json &provenance = preset["provenance"];
  provenance["kind"] = "preset";
  provenance["device"] = device.source;
  if (!device.isMeasured)
    provenance["efficiency.matmul"] =
        "no measured rate: the median share of its generation";
  if (!device.unverified.empty())
    provenance["unverified"] = device.unverified;
  provenance["date"] = "2026-11";
  return preset;
}

namespace {

/// What a document sustains over what the step model takes for the device: a
/// file of the user's own may say other shares, a calibrated one other rates.
struct Shares {
  double products = 1, memory = 1, links = 1, network = 1;
};

/// `usual` is the model's own; presets with files of their own round it.
double ratio(int64_t own, double factor, double usual, int64_t preset) {
  constexpr double Same = 0.002;
  const double plain = static_cast<double>(own) / factor;
  auto isNear = [&](double other) {
    return plain > other * (1 - Same) && plain < other * (1 + Same);
  };
  return isNear(usual) || isNear(static_cast<double>(preset))
             ? factor
             : factor * plain / usual;
}

Shares sharesOf(const Cluster &cluster, const DeviceModel &device) {
  const Expected<Cluster> preset = presetCluster("2x1x" + device.name);
  if (!preset)
    return {};
  const Constants &constants = builtInConstants();
  const Calibration &calibration = cluster.calibration;
  const double products = device.ceilingFlops / device.peakFlops *
                          constants.productShare * device.sustained;
  const DType type = device.generation >= Generation::Ampere ? DType::BFloat16
                                                             : DType::Float16;
  Shares shares;
  shares.products = ratio(cluster.device.matmulEfficiency, calibration.compute,
                          products * Million, preset->device.matmulEfficiency);
  if (auto peak = cluster.device.peakFlopsPerSecond.find(type);
      peak != cluster.device.peakFlopsPerSecond.end())
    shares.products *= ratio(peak->second, 1, device.peakFlops,
                             preset->device.peakFlopsPerSecond.at(type));
  shares.memory =
      ratio(cluster.device.memoryEfficiency, calibration.compute,
            constants.memoryShare * Million, preset->device.memoryEfficiency);
  if (!cluster.levels.empty())
    shares.links =
        ratio(cluster.levels.front().efficiency, calibration.links,
              constants.linkShare * Million, preset->levels.front().efficiency);
  if (cluster.levels.size() > 1)
    shares.network =
        ratio(cluster.levels.back().efficiency, calibration.network,
              constants.nicShare * Million, preset->levels.back().efficiency);
  return shares;
}

} // namespace

Machine machineOf(const Cluster &cluster) {
  const Device &own = cluster.device;
  auto share = [](int64_t millionths) {
    return static_cast<double>(millionths) / Million;
  };
  Machine machine;
  DeviceModel &device = machine.device;
  Expected<DeviceModel> known = findDevice(own.name);
  if (known) {
    device = *known;
  } else {
    // A device of the user's own: what the document sustains is measured.
    const Constants &constants = builtInConstants();
    device.name = own.name;
    double peak = 0;
    for (const auto &[type, flops] : own.peakFlopsPerSecond)
      peak = std::max(peak, static_cast<double>(flops));
    device.peakFlops = device.fp8PeakFlops = peak;
    device.ceilingFlops = device.fp8CeilingFlops =
        peak * share(own.matmulEfficiency) / constants.productShare;
    auto single = own.peakFlopsPerSecond.find(DType::Float32);
    device.vectorFlops = single == own.peakFlopsPerSecond.end()
                             ? peak / 16
                             : static_cast<double>(single->second);
    constexpr int64_t UsualMultiprocessors = 108;
    device.multiprocessors = UsualMultiprocessors;
    device.source = "the cluster's document";
  }
  device.memoryBytes = static_cast<double>(own.memoryBytes);
  device.memoryBytesPerSecond = static_cast<double>(own.memoryBytesPerSecond);
  const Shares shares = known ? sharesOf(cluster, *known) : Shares();
  device.ceilingFlops *= shares.products;
  device.fp8CeilingFlops *= shares.products;
  device.memoryBytesPerSecond *= shares.memory;
  machine.devices = cluster.deviceCount();
  machine.devicesPerNode = cluster.devicesPerNode;
  if (!cluster.levels.empty())
    device.linkBytesPerSecond =
        static_cast<double>(cluster.levels.front().bytesPerSecond) *
        shares.links;
  machine.nodeNicBytesPerSecond =
      cluster.levels.size() > 1
          ? static_cast<double>(cluster.levels.back().bytesPerSecond *
                                cluster.devicesPerNode) *
                shares.network
          : device.nodeNicBytesPerSecond;
  machine.nics = device.nics;
  return machine;
}

} // namespace monarch::planner
