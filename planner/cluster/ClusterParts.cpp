//===- ClusterParts.cpp - clusters of several kinds of devices ------------===//
#include "planner/cluster/ClusterParts.h"

#include "core/support/Json.h"
#include "planner/step/Machine.h"

#include <algorithm>
#include <fmt/format.h>

namespace monarch::planner {

namespace {

constexpr int64_t MostDevices = 1'000'000;

/// A whole number, 1 where it is missing; readCluster refuses what is neither.
int64_t countOf(const Json &node, const char *key) {
  if (!node.contains(key) || !node[key].is_number_integer())
    return 1;
  return std::clamp<int64_t>(node[key].get<int64_t>(), 1, MostDevices);
}

/// The whole document with one entry of "nodes", as large as that entry is.
Json partOf(const Json &document, const Json &node) {
  Json part = document;
  part["nodes"] = Json::array({node});
  const int64_t perNode = countOf(node, "per_node");
  const std::string name = node.contains("device") && node["device"].is_string()
                               ? node["device"].get<std::string>()
                               : "";
  Json own = Json::object();
  if (document.contains("devices") && document["devices"].is_object() &&
      document["devices"].contains(name))
    own[name] = document["devices"][name];
  else if (const auto preset = presetCluster("1x1x" + name))
    own[name] = Json::parse(preset->document)["devices"].front();
  part["devices"] = own;
  if (part.contains("levels") && part["levels"].is_array())
    for (size_t i = 0; i < part["levels"].size(); ++i)
      if (part["levels"][i].is_object())
        part["levels"][i]["size"] =
            i == 0 ? perNode : perNode * countOf(node, "count");
  return part;
}

} // namespace

int64_t ClusterParts::deviceCount() const {
  int64_t count = 0;
  for (const Cluster &part : parts)
    count += part.deviceCount();
  return count;
}

Expected<ClusterParts> readClusterParts(std::string_view text) {
  const Json document = Json::parse(text, nullptr, /*allow_exceptions=*/false,
                                    /*ignore_comments=*/true);
  ClusterParts result;
  const bool isMixed = document.is_object() && document.contains("nodes") &&
                       document["nodes"].is_array() &&
                       document["nodes"].size() > 1;
  if (!isMixed) {
    auto whole = readCluster(text);
    if (!whole)
      return whole.error();
    result.parts.push_back(std::move(*whole));
    return result;
  }
  for (size_t i = 0; i < document["nodes"].size(); ++i) {
    const Json &node = document["nodes"][i];
    auto part = node.is_object()
                    ? readCluster(partOf(document, node).dump())
                    : Expected<Cluster>(Error{"MP1101", ExitCode::BadInput,
                                              "must be an object", "", ""});
    if (!part) {
      Error error = part.error();
      error.where = fmt::format("/nodes/{}", i);
      return error;
    }
    result.parts.push_back(std::move(*part));
  }
  result.isOneBox = document.contains("levels") &&
                    document["levels"].is_array() &&
                    document["levels"].size() == 1;
  return result;
}

} // namespace monarch::planner
