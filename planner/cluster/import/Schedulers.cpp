//===- Schedulers.cpp - clusters as Slurm and Kubernetes list them --------===//
#include "planner/cluster/Cluster.h"
#include "planner/cluster/KnownMachines.h"
#include "planner/cluster/import/Parts.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>

namespace monarch::planner {

namespace {

constexpr size_t MostHosts = 100'000;

/// "Key=Value" words of a line of Slurm's files, keys in lower case.
std::map<std::string, std::string> fieldsOf(const std::string &line) {
  std::map<std::string, std::string> fields;
  for (const std::string &word : wordsOf(line.substr(0, line.find('#')))) {
    const size_t equals = word.find('=');
    if (equals == word.npos)
      continue;
    std::string key = word.substr(0, equals);
    std::transform(key.begin(), key.end(), key.begin(), [](unsigned char c) {
      return static_cast<char>(std::tolower(c));
    });
    fields[key] = word.substr(equals + 1);
  }
  return fields;
}

/// One "prefix[1-3,5]suffix"; false: wrong or too many.
bool expandOne(const std::string &item, std::vector<std::string> &hosts) {
  const size_t open = item.find('[');
  if (open == item.npos) {
    hosts.push_back(item);
    return !item.empty() && hosts.size() <= MostHosts;
  }
  const size_t close = item.find(']', open);
  if (close == item.npos || item.find('[', close) != item.npos)
    return false;
  const std::string before = item.substr(0, open),
                    after = item.substr(close + 1);
  std::string ranges = item.substr(open + 1, close - open - 1) + ",";
  while (!ranges.empty()) {
    const std::string range = ranges.substr(0, ranges.find(','));
    ranges.erase(0, range.size() + 1);
    const size_t dash = range.find('-');
    const std::string low = range.substr(0, dash);
    const auto first = numberOf(low);
    const auto last =
        dash == range.npos ? first : numberOf(range.substr(dash + 1));
    if (!first || !last || *last < *first ||
        *last - *first >= static_cast<int64_t>(MostHosts))
      return false;
    for (int64_t number = *first; number <= *last; ++number)
      hosts.push_back(
          fmt::format("{}{:0{}}{}", before, number, low.size(), after));
    if (hosts.size() > MostHosts)
      return false;
  }
  return true;
}

} // namespace

std::optional<std::vector<std::string>> expandHosts(std::string_view text) {
  std::vector<std::string> hosts;
  std::string item;
  int depth = 0;
  for (char c : std::string(text) + ",") {
    depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    if (c != ',' || depth > 0) {
      item += c;
      continue;
    }
    if (!expandOne(item, hosts))
      return std::nullopt;
    item.clear();
  }
  return depth == 0 ? std::optional(hosts) : std::nullopt;
}

Expected<Json> importSlurmTopology(std::string_view text,
                                   const std::string &node) {
  if (node.empty())
    return importError("topology.conf does not say what a node is", "",
                       "give --node, an instance type or PER_NODExDEVICE");
  const auto preset = presetCluster(node);
  if (!preset)
    return preset.error();
  if (preset->nodes != 1)
    return importError(fmt::format("\"{}\" is {} nodes", node, preset->nodes),
                       "--node", "give the preset of one node");
  std::vector<std::vector<std::string>> groups;
  std::string kind;
  std::vector<std::string> hosts;
  const std::vector<std::string> lines = linesOf(text);
  for (size_t i = 0; i < lines.size(); ++i) {
    auto fields = fieldsOf(lines[i]);
    const bool isBlock = fields.contains("blockname");
    if ((!isBlock && !fields.contains("switchname")) ||
        !fields.contains("nodes"))
      continue;
    kind = isBlock ? "block" : "leaf switch";
    const auto names = expandHosts(fields["nodes"]);
    if (!names)
      return importError(
          fmt::format("\"{}\" is not a list of hosts", fields["nodes"]),
          fmt::format("line {}", i + 1), "write Nodes=name[1-4,7]");
    groups.push_back(*names);
    hosts.insert(hosts.end(), names->begin(), names->end());
  }
  if (groups.empty() || hosts.size() > MostHosts)
    return importError("no switches or blocks with nodes", "",
                       "give Slurm's topology.conf");
  std::vector<std::string> sorted = hosts;
  std::sort(sorted.begin(), sorted.end());
  if (auto twice = std::adjacent_find(sorted.begin(), sorted.end());
      twice != sorted.end())
    return importError(fmt::format("{} hangs on two switches", *twice), "",
                       "give each node once");
  Json document;
  document["schema"] = "monarch.cluster/1";
  document["extends"] = node;
  document["count"] = hosts.size();
  // Kept for launchers; the order is that of ranks.
  document["hosts"] = hosts;
  Json sizes = Json::array();
  for (const auto &group : groups)
    sizes.push_back(group.size());
  document["groups"] = {{"kind", kind}, {"nodes", sizes}};
  document["provenance"]["imported"] = "Slurm topology.conf";
  document["provenance"]["nic"] =
      "that of the node's preset; Slurm's LinkSpeed says nothing of rates";
  return document;
}

namespace {

struct NodeKind {
  std::string preset;
  std::string product;
  int64_t count = 0;
  auto operator<=>(const NodeKind &) const = default;
};

std::string labelOf(const Json &labels, const char *key) {
  return labels.is_object() && labels.contains(key) && labels[key].is_string()
             ? labels[key].get<std::string>()
             : "";
}

const Json &at(const Json &object, const char *key) {
  static const Json none;
  return object.is_object() && object.contains(key) ? object[key] : none;
}

/// What one item is; nullopt: no GPUs.
Expected<std::optional<NodeKind>> kindOf(const Json &item, size_t index) {
  const std::string place = fmt::format("/items/{}", index);
  const Json &labels = at(at(item, "metadata"), "labels");
  std::string count = labelOf(labels, "nvidia.com/gpu.count");
  if (count.empty()) {
    const Json &capacity =
        at(at(at(item, "status"), "capacity"), "nvidia.com/gpu");
    count = capacity.is_string() ? capacity.get<std::string>() : "";
  }
  const int64_t gpus = numberOf(count).value_or(0);
  if (gpus < 1)
    return std::optional<NodeKind>();
  NodeKind kind;
  kind.count = gpus;
  kind.product = labelOf(labels, "nvidia.com/gpu.product");
  if (kind.product.find("MIG") != kind.product.npos)
    return Error{"MP1107", ExitCode::Infeasible,
                 fmt::format("{} are slices of one GPU (MIG): collectives "
                             "between slices are not supported",
                             kind.product),
                 place,
                 "plan for whole GPUs, for one slice, or rehearse on cpu:N"};
  const std::string instance =
      labelOf(labels, "node.kubernetes.io/instance-type");
  if (const InstanceType *known = findInstance(instance);
      known && known->devices == gpus) {
    kind.preset = known->name;
    return std::optional(kind);
  }
  constexpr double MiB = 1024.0 * 1024;
  const double memory =
      MiB * static_cast<double>(
                numberOf(labelOf(labels, "nvidia.com/gpu.memory")).value_or(0));
  if (kind.product.empty())
    return importError("a node with GPUs that names neither product nor a "
                       "known instance type",
                       place + "/metadata/labels",
                       "label it with nvidia.com/gpu.product, as the GPU "
                       "feature discovery does");
  const auto device = deviceOfProduct(kind.product, memory);
  if (!device) {
    Error error = device.error();
    error.where = place;
    return error;
  }
  kind.preset = fmt::format("{}x{}", gpus, *device);
  return std::optional(kind);
}

} // namespace

Expected<Json> importKubernetesNodes(std::string_view json) {
  const auto root = parseJson(json, "nodes");
  if (!root)
    return root.error();
  const Json &items = at(*root, "items");
  if (!items.is_array())
    return importError("no list of nodes", "/items",
                       "give the output of kubectl get nodes -o json");
  std::map<NodeKind, std::vector<std::string>> kinds;
  for (size_t i = 0; i < items.size(); ++i) {
    const auto kind = kindOf(items[i], i);
    if (!kind)
      return kind.error();
    const Json &name = at(at(items[i], "metadata"), "name");
    if (*kind)
      kinds[**kind].push_back(name.is_string() ? name.get<std::string>()
                                               : fmt::format("{}", i));
  }
  if (kinds.empty())
    return importError("no node has GPUs", "/items",
                       "label GPU nodes, or plan for cpu:N");
  if (kinds.size() > 1) {
    std::string list;
    for (const auto &[kind, names] : kinds)
      list += fmt::format(
          "{}{} x {} ({})", list.empty() ? "" : "; ", names.size(), kind.preset,
          fmt::join(names.begin(),
                    names.begin() + static_cast<std::ptrdiff_t>(
                                        std::min<size_t>(names.size(), 3)),
                    ", "));
    return Error{"MP1108", ExitCode::Unsupported,
                 "nodes of several kinds: " + list, "/items",
                 "select one kind, as kubectl get nodes -l "
                 "nvidia.com/gpu.product=NAME -o json"};
  }
  const auto &[kind, names] = *kinds.begin();
  Json document;
  document["schema"] = "monarch.cluster/1";
  document["extends"] = kind.preset;
  document["count"] = names.size();
  document["hosts"] = names;
  document["provenance"]["imported"] = "Kubernetes node labels";
  if (!kind.product.empty())
    document["provenance"]["product"] = kind.product;
  return document;
}

} // namespace monarch::planner
