//===- ShowCluster.cpp - clusters for people ------------------------------===//
#include "planner/cluster/ShowCluster.h"

#include "planner/cluster/KnownMachines.h"
#include "planner/cluster/Units.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace monarch::planner {

namespace {

std::string rate(int64_t bytesPerSecond) {
  const double value = static_cast<double>(bytesPerSecond);
  return value < 1e12 ? fmt::format("{:.4g} GB/s", value / 1e9)
                      : fmt::format("{:.4g} TB/s", value / 1e12);
}

double percent(int64_t millionths) {
  return 100.0 * static_cast<double>(millionths) / Million;
}

std::string textOf(const Json &value) {
  if (value.is_string())
    return value.get<std::string>();
  if (!value.is_array())
    return value.dump();
  std::string text;
  for (const Json &item : value)
    text += (text.empty() ? "" : ", ") + textOf(item);
  return text;
}

std::string gigabits(const InstanceType &type) {
  return fmt::format("{:g}", type.nicBytesPerSecond * 8 / 1e9);
}

} // namespace

std::string showCluster(const Cluster &cluster) {
  const Device &device = cluster.device;
  std::string text =
      fmt::format("cluster {}: {} node{} of {} x {} = {} devices\n",
                  cluster.name, cluster.nodes, cluster.nodes == 1 ? "" : "s",
                  cluster.devicesPerNode, device.name, cluster.deviceCount());
  text += fmt::format(
      "memory  {}, {} of it for tensors; {} ({:.0f} % of it "
      "sustained)\n",
      formatBytes(device.memoryBytes), formatBytes(device.usableBytes()),
      rate(device.memoryBytesPerSecond), percent(device.memoryEfficiency));
  text += "peak   ";
  for (const auto &[type, flops] : device.peakFlopsPerSecond)
    text += fmt::format(" {} {:g} TFLOP/s", toString(type),
                        static_cast<double>(flops) / 1e12);
  text += fmt::format(" (products sustain {:.0f} % of it)\n",
                      percent(device.matmulEfficiency));
  for (const LinkLevel &level : cluster.levels)
    text += fmt::format("level   {}: joins {} devices, {} each way ({:.0f} % "
                        "of it sustained), {}\n",
                        level.name, level.size, rate(level.bytesPerSecond),
                        percent(level.efficiency),
                        formatPicoseconds(level.latencyPicoseconds));
  const Json document = Json::parse(cluster.document, nullptr, false);
  if (document.contains("calibration"))
    for (const auto &[key, value] : document["calibration"].items())
      if (value.is_number())
        text += fmt::format("fitted  {}: {}\n", key, textOf(value));
  if (document.contains("provenance") && document["provenance"].is_object())
    for (const auto &[key, value] : document["provenance"].items())
      text += fmt::format("from    {}: {}\n", key, textOf(value));
  return text;
}

std::string listMachines() {
  std::string text =
      fmt::format("{:<32} {:<8} {:>2} x {:<16} {:>9}  {}\n", "instance type",
                  "cloud", "n", "device", "NIC Gb/s", "figures");
  for (const InstanceType &type : instanceTypes())
    text += fmt::format("{:<32} {:<8} {:>2} x {:<16} {:>9}  {}\n", type.name,
                        type.cloud, type.devices, type.device, gigabits(type),
                        type.isVerified ? "read" : "unverified");
  text += fmt::format("\n{:<32} {:>9} {:>9} {:>10}  {}\n", "device", "memory",
                      "16-bit", "links", "figures recalled");
  for (const DeviceModel &device : deviceModels())
    text += fmt::format("{:<32} {:>6g} GB {:>4g} TFLOP {:>5g} GB/s  {}\n",
                        device.name, device.memoryBytes / 1e9,
                        device.peakFlops / 1e12,
                        device.linkBytesPerSecond / 1e9, device.unverified);
  text += "\nwrite --cluster 2xp5.48xlarge, 2x8xH100-SXM-80GB, 4xRTX4090, "
          "cpu:4, or a monarch.cluster/1 file\n";
  return text;
}

Json machinesJson() {
  Json json;
  json["instances"] = Json::array();
  for (const InstanceType &type : instanceTypes())
    json["instances"].push_back(
        {{"name", type.name},
         {"cloud", type.cloud},
         {"device", type.device},
         {"devices", type.devices},
         {"nics", type.nics},
         {"nic_bytes_per_second", type.nicBytesPerSecond},
         {"provenance", type.isVerified ? "read" : "unverified"},
         {"source", type.source}});
  json["devices"] = Json::array();
  for (const DeviceModel &device : deviceModels())
    json["devices"].push_back(
        {{"name", device.name},
         {"memory_bytes", device.memoryBytes},
         {"memory_bw_bytes_per_second", device.memoryBytesPerSecond},
         {"peak_flops_per_second", device.peakFlops},
         {"link", device.hasNvlink ? "nvlink" : "pcie"},
         {"link_bytes_per_second", device.linkBytesPerSecond},
         {"measured", device.isMeasured},
         {"unverified", device.unverified},
         {"source", device.source}});
  return json;
}

} // namespace monarch::planner
