//===- Presets.cpp - clusters by name -------------------------------------===//
//
// "[NODESx]PER_NODExDEVICE" and "cpu:N". Figures come from planner/data, built
// into the library; nothing is measured. A generation digit as in "SXM5" may be
// written or left out, case does not matter.
//
//===----------------------------------------------------------------------===//
#include "core/support/Json.h"
#include "planner/cluster/Cluster.h"
#include "planner/cluster/PresetData.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>

namespace monarch::planner {

namespace {

/// "h100-sxm5-80gb" and "H100-SXM-80GB" alike.
std::string normalised(std::string_view name) {
  std::string text;
  for (char c : name) {
    bool generation =
        std::isdigit(static_cast<unsigned char>(c)) && text.ends_with("sxm");
    if (!generation)
      text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return text;
}

size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t substitute = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
    }
  }
  return row.back();
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

Cluster instantiate(const PresetData &preset, std::string name, int64_t nodes,
                    int64_t perNode) {
  Json data = Json::parse(preset.json);
  Json document;
  document["schema"] = "monarch.cluster/1";
  document["name"] = std::move(name);
  document["devices"][std::string(preset.name)] = data["device"];
  document["nodes"] = Json::array(
      {{{"count", nodes}, {"per_node", perNode}, {"device", preset.name}}});
  document["levels"] = data["levels"];
  document["levels"][0]["size"] = perNode;
  if (document["levels"].size() > 1)
    document["levels"][1]["size"] = perNode * nodes;
  document["provenance"] = data["provenance"];
  return *readCluster(document.dump());
}

std::string listOfDevices() {
  std::string text;
  for (const std::string &name : presetDevices())
    text += (text.empty() ? "" : ", ") + name;
  return text;
}

} // namespace

std::vector<std::string> presetDevices() {
  std::vector<std::string> names;
  for (const PresetData &preset : presetData())
    if (preset.name != "cpu")
      names.emplace_back(preset.name);
  std::sort(names.begin(), names.end());
  return names;
}

bool looksLikePreset(std::string_view name) {
  if (name.starts_with("cpu:"))
    return true;
  return takeCount(name, 'x') && name.find('/') == std::string_view::npos &&
         !name.ends_with(".json");
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
        return instantiate(preset, std::string(name), 1, ranks);
  }
  std::string_view rest = name;
  std::optional<int64_t> first = takeCount(rest, 'x');
  std::optional<int64_t> second = first ? takeCount(rest, 'x') : std::nullopt;
  int64_t nodes = second ? *first : 1;
  int64_t perNode = second ? *second : first.value_or(0);
  if (nodes < 1 || perNode < 1)
    return presetError(fmt::format("\"{}\" is not a cluster", name),
                       "write a file, cpu:N or [NODESx]PER_NODExDEVICE, as "
                       "8x8xH100-SXM-80GB");

  const PresetData *nearest = nullptr;
  size_t nearestDistance = 0;
  for (const PresetData &preset : presetData()) {
    if (preset.name == "cpu")
      continue;
    size_t distance = editDistance(normalised(preset.name), normalised(rest));
    if (!nearest || distance < nearestDistance) {
      nearest = &preset;
      nearestDistance = distance;
    }
  }
  if (nearestDistance != 0) {
    std::string fix = "devices are " + listOfDevices();
    if (nearestDistance <= 6)
      fix = fmt::format("did you mean {}? {}", nearest->name, fix);
    return presetError(fmt::format("no preset for device \"{}\"", rest), fix);
  }
  int64_t most = Json::parse(nearest->json).value("max_per_node", int64_t(1));
  if (perNode > most)
    return presetError(fmt::format("{} {} in one node", perNode, nearest->name),
                       fmt::format("a node has at most {}; write {}x{}x{}",
                                   most, (nodes * perNode + most - 1) / most,
                                   most, nearest->name));
  return instantiate(*nearest, std::string(name), nodes, perNode);
}

} // namespace monarch::planner
