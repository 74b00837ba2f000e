//===- ClusterJson.cpp - monarch.cluster/1 --------------------------------===//
//
// A strict reader that names each wrong field by its JSON pointer and lists all
// problems at once, and the canonical form: known keys in a fixed order, others
// after them by name.
//
//===----------------------------------------------------------------------===//
#include "core/support/Json.h"
#include "core/support/Sha256.h"
#include "planner/cluster/Cluster.h"
#include "planner/cluster/Extend.h"
#include "planner/cluster/Units.h"

#include <algorithm>
#include <fmt/format.h>
#include <span>

namespace monarch::planner {

namespace {

/// Collects what is wrong while fields are read; reads go on with defaults.
class FieldReader {
public:
  std::vector<std::string> problems;

  void problem(const std::string &pointer, const std::string &what) {
    problems.push_back(pointer + ": " + what);
  }

  /// "memory": "80GiB" or "memory_bytes": 80000000000.
  int64_t quantity(const Json &object, const std::string &pointer,
                   const std::string &key, Dimension dimension,
                   std::optional<int64_t> fallback = std::nullopt) {
    std::string bareKey = key + std::string(bareSuffix(dimension));
    if (object.contains(bareKey)) {
      const Json &field = object[bareKey];
      std::optional<int64_t> value;
      if (field.is_number())
        value = parseBareQuantity(dimension, field.dump());
      if (!value)
        problem(pointer + "/" + bareKey, "must be a non-negative number");
      return value.value_or(0);
    }
    if (!object.contains(key)) {
      if (!fallback)
        problem(pointer + "/" + key,
                fmt::format("is missing; write \"{}\": \"NUMBER UNIT\" or "
                            "\"{}\": NUMBER",
                            key, bareKey));
      return fallback.value_or(0);
    }
    const Json &field = object[key];
    std::optional<int64_t> value;
    if (field.is_string())
      value = parseQuantity(dimension, field.get<std::string>());
    if (!value)
      problem(pointer + "/" + key,
              fmt::format("{} has no unit; write a text with one of {}, or the "
                          "bare number as \"{}\"",
                          field.dump(), unitsOf(dimension), bareKey));
    return value.value_or(0);
  }

  int64_t count(const Json &object, const std::string &pointer,
                const std::string &key,
                std::optional<int64_t> fallback = std::nullopt) {
    if (!object.contains(key) && fallback)
      return *fallback;
    if (object.contains(key) && object[key].is_number_integer()) {
      int64_t value = object[key].get<int64_t>();
      if (value >= 1 && value <= 1'000'000)
        return value;
    }
    problem(pointer + "/" + key, "must be a whole number from 1 to 1000000");
    return 1;
  }

  /// A share of a peak, in (0, 1], as millionths.
  int64_t share(const Json &object, const std::string &pointer,
                const std::string &key) {
    if (!object.contains(key))
      return Million;
    if (object[key].is_number()) {
      double value = object[key].get<double>();
      if (value > 0 && value <= 1)
        return std::max<int64_t>(1, static_cast<int64_t>(value * Million + .5));
    }
    problem(pointer + "/" + key, "must be a number above 0 and at most 1");
    return Million;
  }

  std::string text(const Json &object, const std::string &pointer,
                   const std::string &key) {
    if (object.contains(key) && object[key].is_string())
      return object[key].get<std::string>();
    problem(pointer + "/" + key, "must be a text");
    return "";
  }
};

Device readDevice(const Json &object, const std::string &name,
                  FieldReader &reader) {
  std::string pointer = "/devices/" + name;
  Device device;
  device.name = name;
  if (!object.is_object()) {
    reader.problem(pointer, "must be an object");
    return device;
  }
  device.memoryBytes =
      reader.quantity(object, pointer, "memory", Dimension::Size);
  device.reservedBytes =
      reader.quantity(object, pointer, "reserved", Dimension::Size, 0);
  if (device.reservedBytes > device.memoryBytes)
    reader.problem(pointer + "/reserved", "is more than the memory");
  device.memoryBytesPerSecond =
      reader.quantity(object, pointer, "memory_bw", Dimension::Bandwidth);
  device.launchPicoseconds =
      reader.quantity(object, pointer, "launch", Dimension::Time, 0);
  device.collectiveLaunchPicoseconds =
      reader.quantity(object, pointer, "collective_launch", Dimension::Time, 0);
  if (device.memoryBytesPerSecond == 0)
    reader.problem(pointer + "/memory_bw", "must be above zero");

  std::string bareKey = "peak" + std::string(bareSuffix(Dimension::Rate));
  bool bare = object.contains(bareKey);
  const Json peaks = object.value(bare ? bareKey : "peak", Json());
  std::string peakPointer = pointer + "/" + (bare ? bareKey : "peak");
  if (!peaks.is_object() || peaks.empty())
    reader.problem(
        peakPointer,
        "must list at least one type, as \"float32\": \"67TFLOP/s\"");
  else
    for (const auto &[key, value] : peaks.items()) {
      std::optional<DType> type = parseDType(key);
      std::optional<int64_t> rate;
      if (bare && value.is_number())
        rate = parseBareQuantity(Dimension::Rate, value.dump());
      if (!bare && value.is_string())
        rate = parseQuantity(Dimension::Rate, value.get<std::string>());
      if (!type)
        reader.problem(peakPointer + "/" + key,
                       "is not a type; types are float32, bfloat16, ...");
      else if (!rate || *rate == 0)
        reader.problem(
            peakPointer + "/" + key,
            fmt::format("{} has no unit; write a text with one of {}, or bare "
                        "numbers under \"{}\"",
                        value.dump(), unitsOf(Dimension::Rate), bareKey));
      else
        device.peakFlopsPerSecond[*type] = *rate;
    }

  const Json efficiency = object.value("efficiency", Json::object());
  if (efficiency.is_object()) {
    device.matmulEfficiency =
        reader.share(efficiency, pointer + "/efficiency", "matmul");
    device.memoryEfficiency =
        reader.share(efficiency, pointer + "/efficiency", "memory");
  } else {
    reader.problem(pointer + "/efficiency", "must be an object");
  }
  return device;
}

std::vector<LinkLevel> readLevels(const Json &document, FieldReader &reader) {
  std::vector<LinkLevel> levels;
  const Json list = document.value("levels", Json::array());
  if (!list.is_array()) {
    reader.problem("/levels", "must be a list, innermost level first");
    return levels;
  }
  for (size_t i = 0; i < list.size(); ++i) {
    std::string pointer = fmt::format("/levels/{}", i);
    if (!list[i].is_object()) {
      reader.problem(pointer, "must be an object");
      continue;
    }
    LinkLevel level;
    level.name = reader.text(list[i], pointer, "name");
    level.size = reader.count(list[i], pointer, "size");
    level.bytesPerSecond =
        reader.quantity(list[i], pointer, "bw", Dimension::Bandwidth);
    level.latencyPicoseconds =
        reader.quantity(list[i], pointer, "latency", Dimension::Time, 0);
    level.efficiency = reader.share(list[i], pointer, "efficiency");
    if (level.bytesPerSecond == 0)
      reader.problem(pointer + "/bw", "must be above zero");
    if (!levels.empty() && level.size % levels.back().size != 0)
      reader.problem(pointer + "/size",
                     fmt::format("must be a multiple of {}, the size of the "
                                 "level inside it",
                                 levels.back().size));
    levels.push_back(std::move(level));
  }
  return levels;
}

Calibration readCalibration(const Json &document, FieldReader &reader) {
  Calibration calibration;
  if (!document.contains("calibration"))
    return calibration;
  const Json &object = document["calibration"];
  if (!object.is_object()) {
    reader.problem("/calibration", "must be an object");
    return calibration;
  }
  auto factor = [&](const char *key) {
    if (!object.contains(key))
      return 1.0;
    constexpr double Least = 0.05, Most = 20;
    const double value =
        object[key].is_number() ? object[key].get<double>() : 0;
    if (value >= Least && value <= Most)
      return value;
    reader.problem(fmt::format("/calibration/{}", key),
                   fmt::format("must be a number from {} to {}", Least, Most));
    return 1.0;
  };
  calibration.compute = factor("compute");
  calibration.links = factor("links");
  calibration.network = factor("network");
  return calibration;
}

int64_t times(int64_t share, double factor) {
  return std::max<int64_t>(
      1, static_cast<int64_t>(static_cast<double>(share) * factor + .5));
}

void apply(const Calibration &calibration, Cluster &cluster) {
  cluster.calibration = calibration;
  Device &device = cluster.device;
  device.matmulEfficiency = times(device.matmulEfficiency, calibration.compute);
  device.memoryEfficiency = times(device.memoryEfficiency, calibration.compute);
  for (LinkLevel &level : cluster.levels)
    level.efficiency =
        times(level.efficiency, level.size <= cluster.devicesPerNode
                                    ? calibration.links
                                    : calibration.network);
}

Json ordered(const Json &value, std::span<const std::string_view> order) {
  if (!value.is_object())
    return value;
  Json result = Json::object();
  for (std::string_view key : order)
    if (value.contains(std::string(key)))
      result[std::string(key)] = value[std::string(key)];
  std::vector<std::string> others;
  for (const auto &[key, unused] : value.items())
    if (!result.contains(key))
      others.push_back(key);
  std::sort(others.begin(), others.end());
  for (const std::string &key : others)
    result[key] = value[key];
  return result;
}

Json canonicalDocument(const Json &document) {
  static constexpr std::string_view Top[] = {
      "schema", "name",   "extends",     "devices",
      "nodes",  "levels", "calibration", "provenance"};
  static constexpr std::string_view DeviceKeys[] = {
      "vendor",
      "arch",
      "memory",
      "memory_bytes",
      "reserved",
      "reserved_bytes",
      "memory_bw",
      "memory_bw_bytes_per_second",
      "peak",
      "peak_flops_per_second",
      "efficiency",
      "launch",
      "launch_seconds",
      "collective_launch",
      "collective_launch_seconds"};
  static constexpr std::string_view NodeKeys[] = {"count", "per_node",
                                                  "device"};
  static constexpr std::string_view LevelKeys[] = {
      "name",      "size",
      "bw",        "bw_bytes_per_second",
      "latency",   "latency_seconds",
      "efficiency"};
  Json result = ordered(document, Top);
  Json devices = ordered(result["devices"], {});
  for (auto &[name, device] : devices.items()) {
    device = ordered(device, DeviceKeys);
    for (const char *key : {"peak", "peak_flops_per_second", "efficiency"})
      if (device.contains(key))
        device[key] = ordered(device[key], {});
  }
  result["devices"] = std::move(devices);
  for (Json &node : result["nodes"])
    node = ordered(node, NodeKeys);
  if (result.contains("levels"))
    for (Json &level : result["levels"])
      level = ordered(level, LevelKeys);
  return result;
}

Error clusterError(ExitCode code, std::string what, std::string fix = "") {
  return Error{"MP1101", code, std::move(what), "cluster", std::move(fix)};
}

} // namespace

Expected<Cluster> readCluster(std::string_view text) {
  Json document = Json::parse(text, nullptr, /*allow_exceptions=*/false,
                              /*ignore_comments=*/true);
  if (!document.is_object())
    return clusterError(
        ExitCode::BadInput, "the cluster file is not JSON",
        "write a monarch.cluster/1 document, see docs/cost-model.md");
  std::string schema = document.value("schema", Json("")).is_string()
                           ? document.value("schema", "")
                           : "";
  if (schema != "monarch.cluster/1")
    return clusterError(
        ExitCode::BadInput,
        fmt::format("the schema is \"{}\", not \"monarch.cluster/1\"", schema),
        "set \"schema\": \"monarch.cluster/1\"");

  FieldReader reader;
  Expected<Json> whole = extended(document, reader.problems);
  if (!whole)
    return whole.error();
  document = std::move(*whole);
  Cluster cluster;
  if (document.contains("name"))
    cluster.name = reader.text(document, "", "name");
  const Json devices = document.value("devices", Json());
  const Json nodes = document.value("nodes", Json());
  if (!devices.is_object() || devices.empty())
    reader.problem("/devices", "must describe at least one device by name");
  if (!nodes.is_array() || nodes.empty() || !nodes[0].is_object()) {
    reader.problem("/nodes", "must list {\"count\", \"per_node\", \"device\"}");
  } else {
    cluster.nodes = reader.count(nodes[0], "/nodes/0", "count", 1);
    cluster.devicesPerNode = reader.count(nodes[0], "/nodes/0", "per_node");
    std::string name = reader.text(nodes[0], "/nodes/0", "device");
    if (devices.is_object() && devices.contains(name))
      cluster.device = readDevice(devices[name], name, reader);
    else if (devices.is_object())
      reader.problem("/nodes/0/device",
                     fmt::format("\"{}\" is not described in /devices", name));
    if (nodes.size() > 1)
      return clusterError(
          ExitCode::Unsupported, "/nodes: nodes of several kinds",
          "plan takes them, with --target or --mode infer; elsewhere describe "
          "one kind of node");
  }
  cluster.levels = readLevels(document, reader);
  if (cluster.deviceCount() > 1 &&
      (cluster.levels.empty() ||
       cluster.levels.back().size < cluster.deviceCount()))
    reader.problem("/levels",
                   fmt::format("the outermost level must join all {} devices",
                               cluster.deviceCount()));
  const Calibration calibration = readCalibration(document, reader);
  const Json device = devices.is_object()
                          ? devices.value(cluster.device.name, Json::object())
                          : Json::object();
  if (device.is_object() && device.value("mig", Json(false)) == Json(true) &&
      cluster.deviceCount() > 1)
    return Error{"MP1107", ExitCode::Infeasible,
                 "slices of GPUs (MIG): collectives between slices are not "
                 "supported",
                 "/devices/" + cluster.device.name + "/mig",
                 "plan for whole GPUs, for one slice, or rehearse on cpu:N"};
  if (!reader.problems.empty()) {
    std::string what;
    for (const std::string &problem : reader.problems)
      what += (what.empty() ? "" : "\n  ") + problem;
    return clusterError(ExitCode::BadInput, what,
                        "correct these fields of the cluster file");
  }
  apply(calibration, cluster);
  cluster.document = writeJson(canonicalDocument(document));
  return cluster;
}

std::string writeCluster(const Cluster &cluster) { return cluster.document; }

std::string digest(const Cluster &cluster) {
  Json document = Json::parse(cluster.document, nullptr, false);
  document.erase("name");
  document.erase("provenance");
  return sha256(document.dump());
}

Cluster scaled(const Cluster &cluster, int64_t factor) {
  Json document = Json::parse(cluster.document, nullptr, false);
  bool joinsNodes = cluster.levels.size() > 1;
  Json &count = document["nodes"][0][joinsNodes ? "count" : "per_node"];
  count = (joinsNodes ? cluster.nodes : cluster.devicesPerNode) * factor;
  if (!cluster.levels.empty())
    document["levels"].back()["size"] = cluster.levels.back().size * factor;
  Expected<Cluster> result = readCluster(document.dump());
  return result ? *result : cluster;
}

} // namespace monarch::planner
