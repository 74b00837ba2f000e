//===- OracleTest.cpp - the search against every plan there is ------------===//
//
// On small random graphs the oracle lists meshes, stages, units and choices in
// loops of its own and prices each plan through resolve. The planner's plan
// must cost the same, whatever the memory; or both find that nothing fits.
//
//===----------------------------------------------------------------------===//
#include "planner/Planner.h"
#include "planner/search/SearchContext.h"
#include "test/unit/planner/RandomTrainingGraph.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <set>

using namespace monarch;
using namespace monarch::planner;

namespace {

/// Graphs with fewer plans prove little, those with more take too long.
constexpr size_t FewestPlans = 4, MostPlans = 500;

Cluster toyCluster(int64_t nodes, int64_t perNode, int64_t memoryBytes,
                   int64_t linkScale) {
  Expected<Cluster> cluster = readCluster(fmt::format(
      R"({{"schema": "monarch.cluster/1",
    "devices": {{"toy": {{"memory_bytes": {}, "memory_bw": "10MB/s",
       "launch": "1us", "collective_launch": "2us",
       "peak": {{"float64": "20MFLOP/s"}}}}}},
    "nodes": [{{"count": {}, "per_node": {}, "device": "toy"}}],
    "levels": [{{"name": "in", "size": {}, "bw": "{}MB/s", "latency": "1us"}},
               {{"name": "out", "size": {}, "bw": "{}MB/s", "latency": "5us"}}]
    }})",
      memoryBytes, nodes, perNode, perNode, 4 * linkScale, nodes * perNode,
      linkScale));
  REQUIRE(cluster);
  return *cluster;
}

struct OraclePlan {
  int64_t picoseconds;
  int64_t peakBytes;
};

/// Every plan, or nullopt when there are more than the test has time for.
class Oracle {
public:
  Oracle(const Graph &graph, const Cluster &cluster, const Workload &workload)
      : graph(graph), cluster(cluster), workload(workload) {}

  std::optional<std::vector<OraclePlan>> run() {
    int64_t devices = cluster.deviceCount();
    for (bool counting : {true, false}) {
      countOnly = counting;
      for (int64_t rows = 1; rows <= workload.globalRows; ++rows) {
        if (workload.globalRows % rows != 0)
          continue;
        Graph scaled = *withUnitRows(graph, rows);
        StrategySpace space(scaled);
        SplitRules rules(space);
        for (int64_t dp = 1; dp <= devices; ++dp)
          for (int64_t tp = 1; tp <= devices / dp; ++tp)
            if (devices % (dp * tp) == 0)
              listMesh(space, rules, {dp, tp, devices / dp / tp, rows});
      }
      if (count > MostPlans)
        return std::nullopt;
    }
    return std::move(plans);
  }

private:
  void listMesh(const StrategySpace &space, const SplitRules &rules,
                const Degrees &degrees) {
    std::optional<MeshPlan> plan = meshOf(degrees, workload.globalRows);
    bool shared = workload.globalRows % degrees.dp == 0;
    if (!plan || (plan->rowAxes > 0 && shared) || !rules.canSplit(*plan))
      return;
    CutPlaces places = cutPlaces(space, rules);
    size_t ops = places.ops.size();
    for (uint64_t mask = 0; mask < (uint64_t(1) << (ops - 1)); ++mask) {
      std::vector<size_t> cuts;
      for (size_t i = 1; i < ops; ++i)
        if (mask >> (i - 1) & 1)
          cuts.push_back(i);
      if (static_cast<int64_t>(cuts.size()) + 1 == degrees.pp)
        listChoices(space, rules, *plan, degrees,
                    stagesFromCuts(space, places, cuts));
    }
  }

  /// An odometer over every choice of every op on every axis.
  void listChoices(const StrategySpace &space, const SplitRules &rules,
                   const MeshPlan &plan, const Degrees &degrees,
                   const std::vector<int> &stage) {
    const std::vector<OpId> &ops = rules.decidingOps();
    size_t axes = plan.mesh.axes.size() - plan.dataAxes;
    std::vector<std::vector<int>> choice(space.graph().ops.size());
    for (OpId op : ops)
      choice[op].assign(axes, 0);
    while (true) {
      bool legal = true;
      for (OpId op : ops)
        for (size_t axis = 0; axis < axes && legal; ++axis) {
          std::vector<int> before(choice[op].begin(),
                                  choice[op].begin() + axis);
          std::vector<int> allowed = rules.allowed(op, plan, before);
          legal =
              std::count(allowed.begin(), allowed.end(), choice[op][axis]) > 0;
        }
      if (legal && ++count <= MostPlans && !countOnly)
        priceOne(space, plan, degrees, choice, stage);
      if (count > MostPlans)
        return;
      size_t wheel = 0;
      for (; wheel < ops.size() * axes; ++wheel) {
        OpId op = ops[wheel / axes];
        int &digit = choice[op][wheel % axes];
        if (++digit < static_cast<int>(space.choices(op).size()))
          break;
        digit = 0;
      }
      if (wheel == ops.size() * axes)
        return;
    }
  }

  void priceOne(const StrategySpace &space, const MeshPlan &plan,
                const Degrees &degrees,
                const std::vector<std::vector<int>> &choice,
                const std::vector<int> &stage) {
    Decisions decisions = assemble(space, plan, choice, stage,
                                   static_cast<int>(degrees.pp), workload);
    Expected<Resolved> resolved = resolve(space, decisions);
    REQUIRE(resolved);
    Expected<Price> cost = price(resolved->program, cluster);
    REQUIRE(cost);
    plans.push_back(
        {cost->stepPicoseconds, resolved->program.predictedPeakBytes});
  }

  const Graph &graph;
  const Cluster &cluster;
  const Workload &workload;
  bool countOnly = false;
  size_t count = 0;
  std::vector<OraclePlan> plans;
};

} // namespace

TEST_CASE("The plan costs what the best of all plans costs") {
  constexpr size_t GraphsWanted = 110;
  size_t graphs = 0, infeasible = 0, split = 0, staged = 0;
  for (unsigned seed = 0; graphs < GraphsWanted; ++seed) {
    REQUIRE(seed < 3000);
    std::mt19937 random(seed);
    int64_t rows = 1 + random() % 3, perNode = 1 + random() % 2;
    int64_t devices = 1 + random() % 4;
    int64_t nodes = devices % perNode == 0 ? devices / perNode : devices;
    perNode = devices / nodes;
    Graph graph = monarch::test::randomTrainingGraph(
        seed, rows, 2 + static_cast<int>(random() % 7));
    Workload workload;
    workload.globalRows = rows * (1 + random() % 3);
    workload.optimizer =
        random() % 2 ? OptimizerKind::AdamW : OptimizerKind::SGD;
    int64_t linkScale = 1 + random() % 40;
    Cluster loose = toyCluster(nodes, perNode, int64_t(1) << 40, linkScale);
    std::optional<std::vector<OraclePlan>> plans =
        Oracle(graph, loose, workload).run();
    if (!plans || plans->size() < FewestPlans)
      continue;
    ++graphs;

    std::set<int64_t> peaks;
    for (const OraclePlan &plan : *plans)
      peaks.insert(plan.peakBytes);
    for (int64_t memory :
         {int64_t(1) << 40, *peaks.begin(),
          *std::next(peaks.begin(), peaks.size() / 3), *peaks.begin() - 1}) {
      std::optional<int64_t> best;
      for (const OraclePlan &plan : *plans)
        if (plan.peakBytes <= memory && (!best || plan.picoseconds < *best))
          best = plan.picoseconds;
      PlanRequest request;
      request.globalRows = workload.globalRows;
      request.optimizer = workload.optimizer;
      Cluster cluster = toyCluster(nodes, perNode, memory, linkScale);
      Expected<PlanResult> result = makePlan(graph, cluster, request);
      INFO("seed " << seed << ", " << devices << " devices, memory " << memory
                   << ", " << plans->size() << " plans");
      REQUIRE(bool(result) == best.has_value());
      if (!result) {
        CHECK(result.error().code == ExitCode::Infeasible);
        ++infeasible;
        continue;
      }
      CHECK(result->exhaustive);
      CHECK(result->price.stepPicoseconds == *best);
      CHECK(result->peakBytes <= memory);
      split += result->degrees.tp > 1;
      staged += result->degrees.pp > 1;
    }
  }
  // The cases are not all of one sort.
  WARN("cases where nothing fits: " << infeasible << ", with tp: " << split
                                    << ", with pp: " << staged);
  CHECK(infeasible >= 50);
  CHECK(split >= 5);
  CHECK(staged >= 5);
}
