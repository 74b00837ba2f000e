//===- Extend.cpp - a cluster file that says only what differs ------------===//
#include "planner/cluster/Extend.h"

#include "planner/cluster/Cluster.h"
#include "planner/step/Machine.h"

#include <fmt/format.h>

namespace monarch::planner {

namespace {

/// "memory" of "memory_bytes": the quantity that a key gives.
std::string quantityOf(const std::string &key) {
  for (std::string_view suffix :
       {"_bytes_per_second", "_flops_per_second", "_bytes", "_seconds"})
    if (key.ends_with(suffix))
      return key.substr(0, key.size() - suffix.size());
  return key;
}

class Overlay {
public:
  explicit Overlay(std::vector<std::string> &problems) : problems(problems) {}

  /// Pointers of the values that the file gave.
  std::vector<std::string> given;

  void lay(Json &base, const Json &over, const std::string &pointer) {
    for (const auto &[key, value] : over.items()) {
      const std::string place = pointer + "/" + key;
      if (value.is_object() && base.contains(key) && base[key].is_object()) {
        lay(base[key], value, place);
        continue;
      }
      if (value.is_array() && (place == "/levels" || place == "/nodes")) {
        layList(base[key], value, place);
        continue;
      }
      dropOtherSpelling(base, key);
      if (!base.contains(key) || base[key] != value)
        given.push_back(place);
      base[key] = value;
    }
  }

private:
  void dropOtherSpelling(Json &base, const std::string &key) {
    std::string other;
    for (const auto &[name, unused] : base.items())
      if (name != key && quantityOf(name) == quantityOf(key))
        other = name;
    if (!other.empty())
      base.erase(other);
  }

  void layList(Json &base, const Json &list, const std::string &pointer) {
    for (size_t i = 0; i < list.size(); ++i) {
      const bool hasName = list[i].is_object() && list[i].contains("name") &&
                           list[i]["name"].is_string();
      const std::string place =
          pointer + "/" +
          (hasName ? list[i]["name"].get<std::string>() : std::to_string(i));
      if (!list[i].is_object()) {
        problems.push_back(place + ": must be an object");
        continue;
      }
      if (Json *match = find(base, list[i], i))
        lay(*match, list[i], place);
      else
        problems.push_back(fmt::format("{}: the preset has {} here: {}", place,
                                       base.size(), namesOf(base)));
    }
  }

  static Json *find(Json &base, const Json &entry, size_t index) {
    if (!entry.contains("name"))
      return index < base.size() ? &base[index] : nullptr;
    for (Json &candidate : base)
      if (candidate.contains("name") && candidate["name"] == entry["name"])
        return &candidate;
    return nullptr;
  }

  static std::string namesOf(const Json &list) {
    std::string names;
    for (const Json &entry : list)
      if (entry.contains("name"))
        names += (names.empty() ? "" : ", ") + entry["name"].get<std::string>();
    return names;
  }

  std::vector<std::string> &problems;
};

/// Sizes that the file did not give follow its counts.
void resizeLevels(Json &document, const Json &own) {
  const Json &node = document["nodes"][0];
  if (!node["count"].is_number_integer() ||
      !node["per_node"].is_number_integer())
    return;
  auto givesSize = [&](const Json &level) {
    if (!own.contains("levels") || !own["levels"].is_array())
      return false;
    for (const Json &entry : own["levels"])
      if (entry.is_object() && entry.contains("size") &&
          (!entry.contains("name") || entry["name"] == level["name"]))
        return true;
    return false;
  };
  Json &levels = document["levels"];
  constexpr int64_t Most = 1'000'000;
  const int64_t perNode = std::min(node["per_node"].get<int64_t>(), Most);
  const int64_t nodes = std::min(node["count"].get<int64_t>(), Most);
  if (!givesSize(levels.front()))
    levels.front()["size"] = perNode;
  if (levels.size() > 1 && !givesSize(levels.back()))
    levels.back()["size"] = perNode * nodes;
}

/// Devices by the preset's name for them: "H100-SXM-80GB" is "H100-SXM5-80GB".
Json renamed(const Json &devices, const std::string &name,
             std::vector<std::string> &problems) {
  Json result = Json::object();
  // A device has one name in the table and may have another in its file.
  const Expected<DeviceModel> own = findDevice(name);
  for (const auto &[key, value] : devices.items()) {
    const Expected<DeviceModel> device = findDevice(key);
    if (key == name || (own && device && device->name == own->name))
      result[name] = value;
    else
      problems.push_back(
          fmt::format("/devices/{}: the preset's device is \"{}\"", key, name));
  }
  return result;
}

} // namespace

Expected<Json> extended(const Json &document,
                        std::vector<std::string> &problems) {
  if (!document.contains("extends"))
    return document;
  if (!document["extends"].is_string()) {
    problems.push_back("/extends: must be the name of a preset, as "
                       "\"2xp5.48xlarge\"");
    return document;
  }
  const std::string name = document["extends"];
  Expected<Cluster> preset = presetCluster(name);
  if (!preset) {
    Error error = preset.error();
    error.where = "/extends";
    return error;
  }
  Json result = Json::parse(preset->document);
  Json own = document;
  own.erase("extends");
  // How many nodes, without the list of one.
  if (own.contains("count")) {
    if (!own.contains("nodes"))
      own["nodes"] = Json::array({Json::object()});
    if (own["nodes"].is_array() && !own["nodes"].empty() &&
        own["nodes"][0].is_object())
      own["nodes"][0]["count"] = own["count"];
    own.erase("count");
  }
  for (const char *section : {"devices", "provenance"})
    if (own.contains(section) && !own[section].is_object()) {
      problems.push_back(fmt::format("/{}: must be an object", section));
      own.erase(section);
    }
  for (const char *section : {"nodes", "levels"})
    if (own.contains(section) && !own[section].is_array()) {
      problems.push_back(fmt::format("/{}: must be a list", section));
      own.erase(section);
    }
  if (own.contains("devices"))
    own["devices"] = renamed(own["devices"], preset->device.name, problems);
  Overlay overlay(problems);
  const Json provenance = own.value("provenance", Json::object());
  own.erase("provenance");
  overlay.lay(result, own, "");
  if (!result["nodes"].empty() && !result["levels"].empty())
    resizeLevels(result, own);
  for (const auto &[key, value] : provenance.items())
    result["provenance"][key] = value;
  result["provenance"]["extends"] = name;
  Json given = Json::array();
  for (const std::string &place : overlay.given)
    if (place != "/schema" && place != "/name")
      given.push_back(place);
  if (!given.empty())
    result["provenance"]["given"] = std::move(given);
  if (!own.contains("name"))
    result["name"] = name;
  return result;
}

} // namespace monarch::planner
