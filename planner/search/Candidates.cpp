//===- Candidates.cpp - which degrees may be planned ----------------------===//
#include "planner/search/Candidates.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace monarch::planner {

namespace {

/// No step takes more; products with sizes of tensors stay far from overflow.
constexpr int64_t MaxGlobalRows = int64_t(1) << 31;

Error illegal(std::string what, std::string where, std::string fix) {
  return Error{"MP3102", ExitCode::Infeasible, std::move(what),
               std::move(where), std::move(fix)};
}

std::string listed(const std::vector<int64_t> &values) {
  return fmt::format("{}", fmt::join(values, ", "));
}

class Lister {
public:
  Lister(SearchContext &context, const PlanRequest &request)
      : context(context), graph(context.graph), pins(request.pins),
        request(request), devices(context.cluster.deviceCount()) {}

  Expected<Candidates> run() {
    if (std::optional<Error> error = checkRows())
      return *error;
    if (std::optional<Error> error = checkDegrees())
      return *error;
    for (int64_t rows : rowsOfUnits())
      for (int64_t tp : divisors(devices))
        for (int64_t pp : divisors(devices / tp))
          consider({devices / tp / pp, tp, pp, rows});
    if (result.legal.empty())
      return nothingLegal();
    return std::move(result);
  }

private:
  bool isFixedUnit() const { return !graph.dynamicBatch; }

  std::optional<Error> checkRows() {
    int64_t global = request.globalRows;
    if (global < 1)
      return Error{"MP3101", ExitCode::Usage,
                   fmt::format("a global batch of {} rows is none", global),
                   "--global-batch", "ask for at least one row"};
    if (global > MaxGlobalRows)
      return Error{"MP3101", ExitCode::Usage,
                   fmt::format("a global batch of {} rows is more than any "
                               "step takes",
                               global),
                   "--global-batch",
                   fmt::format("ask for at most {} rows", MaxGlobalRows)};
    int64_t rows = pins.microBatch.value_or(graph.unitRows);
    if (isFixedUnit() && rows != graph.unitRows)
      return illegal(
          fmt::format("the model was exported with a fixed batch of {} rows, "
                      "so a unit cannot have {}",
                      graph.unitRows, rows),
          "--micro-batch",
          fmt::format("leave --micro-batch out, or export with a dynamic batch "
                      "dim"));
    if (isFixedUnit() && global % rows != 0)
      return illegal(
          fmt::format("the model was exported with a fixed batch of {} rows; a "
                      "global batch of {} is not a multiple of it",
                      rows, global),
          "--global-batch",
          fmt::format("the nearest are {} and {}",
                      std::max(rows, global / rows * rows),
                      (global / rows + 1) * rows));
    if (pins.microBatch && global % rows != 0)
      return illegal(
          fmt::format("a micro-batch of {} rows does not divide the global "
                      "batch of {}",
                      rows, global),
          "--micro-batch",
          fmt::format("the nearest that do are {}",
                      listed(nearestDivisors(global, rows))));
    return std::nullopt;
  }

  std::optional<Error> checkDegrees() {
    int64_t product = 1;
    bool all = pins.dp && pins.tp && pins.pp;
    for (const auto &[name, pin] :
         {std::pair("dp", pins.dp), std::pair("tp", pins.tp),
          std::pair("pp", pins.pp)}) {
      if (!pin)
        continue;
      if (devices % *pin != 0)
        return illegal(
            fmt::format("{}={} does not divide the {} devices of the cluster",
                        name, *pin, devices),
            "--fix", fmt::format("legal are {}", listed(divisors(devices))));
      product = product > devices ? product : product * *pin;
    }
    if (devices % product != 0 || (all && product != devices))
      return illegal(
          fmt::format("the fixed degrees multiply to {}, the cluster has {} "
                      "devices",
                      product, devices),
          "--fix", "dp x tp x pp must be the number of devices");
    return std::nullopt;
  }

  /// Where the loss depends on how rows are grouped, b has a meaning of its own
  /// and is never chosen.
  bool choosesRows() const {
    return graph.dynamicBatch && graph.separable && !pins.microBatch;
  }

  std::vector<int64_t> rowsOfUnits() const {
    if (choosesRows()) {
      std::vector<int64_t> rows = divisors(request.globalRows);
      std::erase_if(rows,
                    [&](int64_t b) { return !canHaveUnitRows(graph, b); });
      return rows;
    }
    return {pins.microBatch.value_or(graph.unitRows)};
  }

  void consider(const Degrees &degrees) {
    if ((pins.dp && *pins.dp != degrees.dp) ||
        (pins.tp && *pins.tp != degrees.tp) ||
        (pins.pp && *pins.pp != degrees.pp))
      return;
    auto forbid = [&](std::string reason) {
      result.forbidden.push_back({degrees, 0, 0, std::move(reason), {}, true});
    };
    // Buffers change from unit to unit, so one replica runs all units: data
    // ranks split the rows inside each.
    const bool inOrder = carriesBuffers(graph);
    std::optional<MeshPlan> plan;
    if (request.globalRows % degrees.unitRows == 0)
      plan = meshOf(degrees, inOrder ? degrees.unitRows : request.globalRows);
    if (!plan)
      return forbid(
          fmt::format("{} rows cannot be shared out to dp={} in units "
                      "of {}",
                      request.globalRows, degrees.dp, degrees.unitRows));
    // Rows inside a unit are split where they must be: where the planner
    // chooses the unit and the batch can be shared out, smaller units do the
    // same.
    if (plan->rowAxes > 0 && choosesRows() && !inOrder &&
        request.globalRows % degrees.dp == 0)
      return;
    if (!tensorAllowed(degrees.tp)) {
      illegalTensor = true;
      return forbid(fmt::format("{} split over no axis of tp={}",
                                hasAttention ? "the heads of an attention"
                                             : "products with weights",
                                degrees.tp));
    }
    if (static_cast<int64_t>(anyUnit().places.ops.size()) < degrees.pp)
      return forbid(fmt::format("pp={} needs that many ops", degrees.pp));
    result.legal.push_back({degrees, std::move(*plan)});
  }

  /// Strategies do not depend on the rows but for tiny units: any will do.
  const Unit &anyUnit() { return context.unit(graph.unitRows); }

  bool tensorAllowed(int64_t tp) {
    auto known = allowed.find(tp);
    if (known != allowed.end())
      return known->second;
    const Unit &unit = anyUnit();
    hasAttention = unit.rules.hasAttention();
    std::optional<MeshPlan> plan =
        meshOf({1, tp, 1, graph.unitRows}, graph.unitRows);
    return allowed[tp] = plan && unit.rules.canSplit(*plan);
  }

  Error nothingLegal() {
    if (illegalTensor) {
      std::vector<int64_t> legal;
      for (int64_t tp : divisors(devices))
        if (tensorAllowed(tp))
          legal.push_back(tp);
      int64_t wanted = pins.tp.value_or(devices);
      return illegal(
          fmt::format("tp={}: {}", wanted, result.forbidden.back().reason),
          pins.tp ? "--fix" : "--cluster",
          fmt::format("legal tp on {} devices: {}", devices, listed(legal)));
    }
    std::string reasons;
    for (const Alternative &alternative : result.forbidden)
      if (reasons.find(alternative.reason) == std::string::npos)
        reasons += (reasons.empty() ? "" : "; ") + alternative.reason;
    return illegal(reasons.empty() ? "no degrees are left" : reasons, "--fix",
                   "change the degrees, the micro-batch or the global batch");
  }

  SearchContext &context;
  const Graph &graph;
  const Pins &pins;
  const PlanRequest &request;
  int64_t devices;
  Candidates result;
  std::map<int64_t, bool> allowed;
  bool hasAttention = false;
  bool illegalTensor = false;
};

} // namespace

Expected<Candidates> listCandidates(SearchContext &context,
                                    const PlanRequest &request) {
  return Lister(context, request).run();
}

} // namespace monarch::planner
