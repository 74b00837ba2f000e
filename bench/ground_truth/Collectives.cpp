//===- Collectives.cpp - predicted and measured collectives ---------------===//
//
// The step model's rings (planner/step/Network) against measured collectives.
// It prices rings alone: rows of other algorithms (trees in switches, NVLS)
// show what that leaves out. Small messages, where the protocol decides, stand
// apart from large ones, where the links do.
//
//===----------------------------------------------------------------------===//
#include "bench/ground_truth/Collectives.h"

#include "core/support/Files.h"
#include "core/support/Json.h"
#include "planner/step/Network.h"

#include <cmath>
#include <fmt/format.h>
#include <map>

namespace monarch::bench {

using namespace planner;

namespace {

double number(const Json &row, const char *key) {
  return row.contains(key) && row[key].is_number() ? row[key].get<double>() : 0;
}

std::string text(const Json &row, const char *key) {
  return row.contains(key) && row[key].is_string() ? row[key].get<std::string>()
                                                   : "";
}

struct Point {
  Machine machine;
  double bytes = 0, ranks = 0, seconds = 0;
};

/// Why a row cannot be predicted, or the point.
std::variant<Point, std::string> pointOf(const Json &row) {
  if (text(row, "collective") != "all_reduce")
    return "not an all-reduce";
  std::string gpu = text(row, "gpu");
  gpu = gpu.substr(0, gpu.find(" ("));
  // Links do not depend on the memory: any size of that card will do.
  const DeviceModel *device = nullptr;
  for (const DeviceModel &known : deviceModels())
    if (!device && known.name.starts_with(gpu))
      device = &known;
  if (!device)
    return "no such device";
  Point point;
  point.ranks = number(row, "n_gpus");
  const double nodes = number(row, "n_nodes");
  point.bytes = number(row, "message_bytes");
  point.seconds = number(row, "time_us") * 1e-6;
  if (const double rate = number(row, "algbw_gbytes_per_s");
      point.seconds == 0 && rate > 0)
    point.seconds = point.bytes / (rate * 1e9);
  if (const double rate = number(row, "busbw_gbytes_per_s");
      point.seconds == 0 && rate > 0 && point.ranks > 0)
    point.seconds =
        point.bytes * 2 * (point.ranks - 1) / point.ranks / (rate * 1e9);
  if (point.ranks < 2 || nodes < 1)
    return "no count of devices";
  if (point.bytes <= 0 || point.seconds <= 0)
    return "no size or time";
  point.machine = usualBoxes(*device, static_cast<int64_t>(point.ranks));
  point.machine.devicesPerNode = static_cast<int64_t>(point.ranks / nodes);
  return point;
}

std::string sizeOf(double bytes) {
  constexpr double Small = 1 << 20, Large = 64 << 20;
  return bytes < Small ? "below 1 MiB" : bytes < Large ? "to 64 MiB" : "above";
}

} // namespace

std::optional<Error> reportCollectives(const std::string &path) {
  const auto content = readFile(path);
  if (!content)
    return content.error();
  const auto rows = parseJson(*content, path);
  if (!rows)
    return rows.error();
  std::map<std::string, std::vector<double>> groups;
  std::map<std::string, int> leftOut;
  for (const Json &row : *rows) {
    const auto found = pointOf(row);
    if (const auto *reason = std::get_if<std::string>(&found)) {
      ++leftOut[*reason];
      continue;
    }
    const Point &point = std::get<Point>(found);
    const Network network(point.machine, builtInConstants(), false);
    const double predicted =
        network.ring(Collective::AllReduce, point.bytes, point.ranks, 1);
    std::string algorithm = text(row, "algorithm");
    algorithm = algorithm.substr(0, algorithm.find(" ("));
    if (algorithm.empty())
      algorithm = "not said";
    groups[fmt::format("{}, {}, {}", algorithm,
                       point.ranks >
                               static_cast<double>(point.machine.devicesPerNode)
                           ? "nodes"
                           : "one node",
                       sizeOf(point.bytes))]
        .push_back(std::log(predicted / point.seconds));
  }
  fmt::print("\n{:<34} {:>4} {:>7} {:>7} {:>7} {:>7} {:>7}\n",
             "all-reduce, priced as a ring", "n", "mean %", "median", "p90",
             "max", "bias");
  for (const auto &[label, residuals] : groups) {
    const Errors errors = errorsOf(residuals);
    fmt::print("{:<34} {:>4} {:>7.1f} {:>7.1f} {:>7.1f} {:>7.1f} {:>+7.1f}\n",
               label, errors.count, errors.mean, errors.median, errors.p90,
               errors.max, errors.bias);
  }
  for (const auto &[reason, count] : leftOut)
    fmt::print("left out: {} rows, {}\n", count, reason);
  return std::nullopt;
}

} // namespace monarch::bench
