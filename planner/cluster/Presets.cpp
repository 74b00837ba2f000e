//===- Presets.cpp - clusters by name -------------------------------------===//
//
// "[NODESx]PER_NODExDEVICE" and "cpu:N". Figures come from planner/data, built
// into the library; nothing is measured. A generation digit as in "SXM5" may be
// written or left out, case does not matter.
//
//===----------------------------------------------------------------------===//
#include "core/support/Json.h"
#include "planner/cluster/Cluster.h"
#include "planner/cluster/KnownMachines.h"
#include "planner/cluster/PresetData.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>

namespace monarch::planner {

namespace {

/// "h100-sxm5-80gb" and "H100-SXM-80GB" alike.
std::string normalised(std::string_view name) {
  std::string text, previous;
  for (char raw : name) {
    const char c =
        static_cast<char>(std::tolower(static_cast<unsigned char>(raw)));
    bool isGeneration = previous.ends_with("sxm") && c >= '0' && c <= '9';
    previous += c;
    if (!isGeneration)
      text += c;
  }
  return text;
}

/// Leading digits followed by the separator; consumes both.
std::optional<int64_t> takeCount(std::string_view &text, char separator) {
  size_t end = text.find_first_not_of("0123456789");
  if (end == 0 || end > 6 || end == std::string_view::npos ||
      text[end] != separator)
    return std::nullopt;
  int64_t value = std::stoll(std::string(text.substr(0, end)));
  text.remove_prefix(end + 1);
  return value;
}

Error presetError(std::string what, std::string fix) {
  return Error{"MP1102", ExitCode::BadInput, std::move(what), "--cluster",
               std::move(fix)};
}

Cluster instantiate(const Json &data, const std::string &device,
                    std::string name, int64_t nodes, int64_t perNode) {
  Json document;
  document["schema"] = "monarch.cluster/1";
  document["name"] = std::move(name);
  document["devices"][device] = data["device"];
  document["nodes"] = Json::array(
      {{{"count", nodes}, {"per_node", perNode}, {"device", device}}});
  document["levels"] = data["levels"];
  document["levels"][0]["size"] = perNode;
  if (document["levels"].size() > 1)
    document["levels"][1]["size"] = perNode * nodes;
  document["provenance"] = data["provenance"];
  return *readCluster(document.dump());
}

/// A device with a file of its own.
const PresetData *presetFile(std::string_view device) {
  for (const PresetData &preset : presetData())
    if (preset.name != "cpu" && normalised(preset.name) == normalised(device))
      return &preset;
  return nullptr;
}

Expected<Cluster> countedPreset(const Json &data, const std::string &device,
                                std::string name, int64_t nodes,
                                int64_t perNode) {
  int64_t most = data.value("max_per_node", int64_t(1));
  if (perNode > most)
    return presetError(fmt::format("{} {} in one node", perNode, device),
                       fmt::format("a node has at most {}; write {}x{}x{}",
                                   most, (nodes * perNode + most - 1) / most,
                                   most, device));
  return instantiate(data, device, std::move(name), nodes, perNode);
}

Expected<Cluster> instancePreset(const InstanceType &type, std::string name,
                                 int64_t nodes) {
  Expected<DeviceModel> device = findDevice(type.device);
  if (!device)
    return device.error();
  if (nodes < 1)
    return presetError("no nodes", "write 2x" + type.name);
  Json data = presetOf(*device, type.devices, type.nicBytesPerSecond);
  data["provenance"]["instance"] = type.source;
  if (!type.isVerified)
    data["provenance"]["unverified"] = "instance, " + device->unverified;
  return instantiate(data, device->name, std::move(name), nodes, type.devices);
}

/// Neither counts nor an instance type: what may have been meant.
Error notACluster(std::string_view name, std::string_view rest) {
  std::string fix = "write a file, cpu:N, an instance type as 2xp5.48xlarge, "
                    "or [NODESx]PER_NODExDEVICE, as 8x8xH100-SXM-80GB";
  if (Expected<DeviceModel> device = findDevice(rest))
    fix = fmt::format("say how many: 8x{0}, or 2x8x{0} for two nodes",
                      device->name);
  else if (namesDevices(rest))
    fix = "say which and how many, as 8x...; " + device.error().fix;
  else if (std::vector<std::string> near = nearInstances(rest); !near.empty())
    fix = fmt::format("did you mean {}? {}", fmt::join(near, ", "), fix);
  return presetError(fmt::format("\"{}\" is not a cluster", name), fix);
}

} // namespace

std::vector<std::string> presetDevices() {
  std::vector<std::string> names;
  for (const PresetData &preset : presetData())
    if (preset.name != "cpu")
      names.emplace_back(preset.name);
  for (const DeviceModel &device : deviceModels())
    if (!presetFile(device.name))
      names.push_back(device.name);
  std::sort(names.begin(), names.end());
  return names;
}

bool looksLikePreset(std::string_view name) {
  if (name.starts_with("cpu:"))
    return true;
  std::string_view rest = name;
  bool isCounted = takeCount(rest, 'x').has_value();
  return (isCounted || findInstance(name) || namesDevices(name) ||
          !nearInstances(name).empty()) &&
         name.find('/') == std::string_view::npos && !name.ends_with(".json");
}

Expected<Cluster> presetCluster(std::string_view name) {
  if (name.starts_with("cpu:")) {
    std::string_view count = name.substr(4);
    bool digits = !count.empty() && count.size() <= 4 &&
                  count.find_first_not_of("0123456789") == count.npos;
    int64_t ranks = digits ? std::stoll(std::string(count)) : 0;
    if (ranks < 1)
      return presetError(
          fmt::format("\"{}\" does not say how many local ranks", name),
          "write cpu:N with N from 1 to 9999, as cpu:4");
    for (const PresetData &preset : presetData())
      if (preset.name == "cpu")
        return instantiate(Json::parse(preset.json), "cpu", std::string(name),
                           1, ranks);
  }
  std::string_view rest = name;
  std::optional<int64_t> first = takeCount(rest, 'x');
  if (const InstanceType *type = findInstance(rest))
    return instancePreset(*type, std::string(name), first.value_or(1));
  std::optional<int64_t> second = first ? takeCount(rest, 'x') : std::nullopt;
  int64_t nodes = second ? *first : 1;
  int64_t perNode = second ? *second : first.value_or(0);
  if (nodes < 1 || perNode < 1)
    return notACluster(name, rest);

  if (const PresetData *file = presetFile(rest))
    return countedPreset(Json::parse(file->json), std::string(file->name),
                         std::string(name), nodes, perNode);
  Expected<DeviceModel> device = findDevice(rest);
  if (!device)
    return presetError(device.error().what, device.error().fix);
  return countedPreset(presetOf(*device, perNode, 0), device->name,
                       std::string(name), nodes, perNode);
}

} // namespace monarch::planner
