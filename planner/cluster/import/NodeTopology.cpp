//===- NodeTopology.cpp - links of one node, as NCCL or nvidia-smi see it -===//
#include "planner/cluster/import/Parts.h"
#include "planner/cluster/import/Xml.h"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <set>

namespace monarch::planner {

namespace {

/// Compute capability of a generation, as NCCL writes it.
Generation generationOf(int64_t capability) {
  if (capability >= 100)
    return Generation::Blackwell;
  if (capability >= 90)
    return Generation::Hopper;
  if (capability == 89)
    return Generation::Ada;
  if (capability >= 80)
    return Generation::Ampere;
  return capability >= 75 ? Generation::Turing : Generation::Volta;
}

struct NcclNode {
  std::set<int64_t> capabilities;
  int64_t gpus = 0;
  int64_t nvlinks = 0;
  /// Peers that a GPU has NVLink to, switches counted as all.
  bool hasSwitch = false;
  size_t peers = 0;
  double nicBitsPerSecond = 0;
  int64_t nics = 0;
};

NcclNode factsOf(const XmlElement &root) {
  NcclNode node;
  std::function<void(const XmlElement &)> walk =
      [&](const XmlElement &element) {
        if (element.name == "gpu") {
          ++node.gpus;
          node.capabilities.insert(
              numberOf(element.attribute("sm")).value_or(0));
          int64_t links = 0;
          std::set<std::string> targets;
          for (const XmlElement &child : element.children)
            if (child.name == "nvlink") {
              links += numberOf(child.attribute("count")).value_or(0);
              targets.insert(child.attribute("target"));
              // PCI class of NVSwitches.
              node.hasSwitch |= child.attribute("tclass").starts_with("0x0680");
            }
          node.nvlinks = node.gpus == 1 ? links : std::min(node.nvlinks, links);
          node.peers = std::max(node.peers, targets.size());
        }
        if (element.name == "net") {
          // Mb/s.
          node.nicBitsPerSecond +=
              1e6 * static_cast<double>(
                        numberOf(element.attribute("speed")).value_or(0));
          ++node.nics;
        }
        for (const XmlElement &child : element.children)
          walk(child);
      };
  walk(root);
  return node;
}

Expected<DeviceModel> deviceFor(const std::string &device, Generation kind,
                                bool hasNvlink) {
  if (!device.empty())
    return findDevice(device);
  std::string names;
  const DeviceModel *only = nullptr;
  int count = 0;
  for (const DeviceModel &model : deviceModels())
    if (model.generation == kind && (!hasNvlink || model.hasNvlink)) {
      names += (names.empty() ? "" : ", ") + model.name;
      only = &model;
      ++count;
    }
  if (count == 1)
    return *only;
  return importError("the topology does not name its devices", "",
                     "give --device, one of " + names);
}

} // namespace

Expected<Json> importNcclTopology(std::string_view xml,
                                  const std::string &device) {
  const auto root = readXml(xml);
  if (!root)
    return root.error();
  if (root->name != "system")
    return importError("no <system> of NCCL's topology", "<" + root->name + ">",
                       "give the file that NCCL_TOPO_DUMP_FILE names");
  const NcclNode node = factsOf(*root);
  constexpr int64_t MostDevices = 128;
  if (node.gpus < 1 || node.gpus > MostDevices)
    return importError(fmt::format("a topology of {} GPUs", node.gpus), "",
                       "dump it on a node with GPUs");
  if (node.capabilities.size() > 1)
    return importError("GPUs of several kinds in one node", "",
                       "describe one kind of device; others by themselves");
  const auto model = deviceFor(device, generationOf(*node.capabilities.begin()),
                               node.nvlinks > 0);
  if (!model)
    return model.error();
  Json document = documentOf(model->name, node.gpus, "NCCL topology");
  NodeLinks links;
  links.nvlinks = node.nvlinks;
  links.isPairwise = !node.hasSwitch && node.nvlinks > 0 &&
                     static_cast<int64_t>(node.peers) + 1 < node.gpus;
  addLinks(*model, node.gpus, links, document);
  if (node.nicBitsPerSecond > 0) {
    Json nic;
    nic["name"] = "nic";
    nic["bw"] = fmt::format("{:g}Gb/s", node.nicBitsPerSecond / 1e9 /
                                            static_cast<double>(node.gpus));
    if (!document.contains("levels"))
      document["levels"] = Json::array();
    document["levels"].push_back(nic);
    document["provenance"]["nic"] =
        fmt::format("{} NICs of {:g} Gb/s together", node.nics,
                    node.nicBitsPerSecond / 1e9);
  }
  return document;
}

Expected<Json> importTopologyMatrix(std::string_view text,
                                    const std::string &device) {
  const std::vector<std::string> lines = linesOf(text);
  size_t header = 0;
  int64_t gpus = 0;
  auto isGpu = [](const std::string &word) {
    return word.starts_with("GPU") && numberOf(word.substr(3));
  };
  for (; header < lines.size() && gpus == 0; ++header)
    for (const std::string &word : wordsOf(lines[header]))
      gpus += isGpu(word) ? 1 : 0;
  constexpr int64_t MostDevices = 128;
  if (gpus < 1 || gpus > MostDevices)
    return importError("no matrix of GPUs", "",
                       "give the output of nvidia-smi topo -m");
  int64_t rows = 0, least = -1, most = 0;
  for (size_t i = header; i < lines.size(); ++i) {
    const std::vector<std::string> words = wordsOf(lines[i]);
    if (words.empty() || !isGpu(words[0]))
      continue;
    if (static_cast<int64_t>(words.size()) < gpus + 1)
      return importError(fmt::format("{} has {} of {} columns", words[0],
                                     words.size() - 1, gpus),
                         fmt::format("line {}", i + 1),
                         "give the whole output of nvidia-smi topo -m");
    ++rows;
    for (int64_t column = 0; column < gpus; ++column) {
      const std::string &word = words[static_cast<size_t>(column + 1)];
      static const std::set<std::string> plainPaths = {"X",   "PIX",  "PXB",
                                                       "PHB", "NODE", "SYS"};
      if (!plainPaths.contains(word) && !word.starts_with("NV"))
        return importError(fmt::format("\"{}\" is no path between GPUs", word),
                           fmt::format("line {}", i + 1),
                           "give the whole output of nvidia-smi topo -m");
      if (word == "X")
        continue;
      const int64_t count =
          word.starts_with("NV") ? numberOf(word.substr(2)).value_or(0) : 0;
      least = least < 0 ? count : std::min(least, count);
      most = std::max(most, count);
    }
  }
  if (rows != gpus)
    return importError(fmt::format("{} rows for {} GPUs", rows, gpus), "",
                       "give the whole output of nvidia-smi topo -m");
  if (device.empty())
    return importError("the matrix does not name its devices", "",
                       "give --device, as monarch-plan cluster list names "
                       "them");
  const auto model = findDevice(device);
  if (!model)
    return model.error();
  Json document = documentOf(model->name, gpus, "nvidia-smi topo -m");
  NodeLinks links;
  links.nvlinks = std::max<int64_t>(least, 0);
  links.isPairwise = least == 0 && most > 0;
  addLinks(*model, gpus, links, document);
  document["provenance"]["nic"] = "the device's usual box: unverified";
  return document;
}

} // namespace monarch::planner
