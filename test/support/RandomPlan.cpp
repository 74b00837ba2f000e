#include "test/support/RandomPlan.h"

#include <algorithm>
#include <numeric>

namespace monarch::test {
namespace {

using planner::Decisions;
using planner::Follow;

/// SplitMix64 (Steele, Lea, Flood 2014): the same draws with every library.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}
  uint64_t next() {
    uint64_t z = (state += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  int64_t below(int64_t bound) {
    return static_cast<int64_t>(next() % static_cast<uint64_t>(bound));
  }
  bool chance(int percent) { return below(100) < percent; }
  template <typename T> const T &of(const std::vector<T> &items) {
    return items[below(static_cast<int64_t>(items.size()))];
  }

private:
  uint64_t state;
};

class PlanDrawer {
public:
  PlanDrawer(const StrategySpace &space, uint64_t seed,
             const RandomPlanLimits &limits)
      : space(space), graph(space.graph()), random(seed), limits(limits) {}

  Decisions draw() {
    drawMesh();
    drawTables();
    drawStages();
    drawChoices();
    for (const Parameter &parameter : graph.parameters)
      plan.parameterLayout.push_back(drawLayout(parameter.value));
    return std::move(plan);
  }

private:
  const StrategySpace &space;
  const Graph &graph;
  Random random;
  const RandomPlanLimits &limits;
  Decisions plan;

  void drawMesh() {
    std::vector<std::vector<int64_t>> shapes{
        {}, {2}, {3}, {2, 2}, {3, 2}, {2, 3}, {2, 2, 2}, {5}, {7}};
    std::erase_if(shapes, [&](const std::vector<int64_t> &shape) {
      return product(shape) > limits.ranks;
    });
    const std::vector<int64_t> sizes = random.of(shapes);
    plan.stages = static_cast<int>(
        1 + random.below(std::min<int64_t>(limits.stages,
                                           limits.ranks / product(sizes))));
    if (sizes.empty() && plan.stages == 1) // one rank proves nothing
      plan.stages = 2;
    int64_t replicas = 1;
    // Buffers that change from unit to unit take one replica.
    const bool data =
        !sizes.empty() && random.chance(40) && !planner::carriesBuffers(graph);
    for (size_t t = 0; t < sizes.size(); ++t) {
      const bool isData = data && t == 0;
      plan.mesh.axes.push_back({(isData ? "dp" : "tp") + std::to_string(t),
                                sizes[t],
                                isData ? AxisRole::Data : AxisRole::Tensor});
      if (isData)
        replicas = sizes[t];
    }
    plan.unitRows = graph.unitRows;
    plan.globalRows =
        graph.unitRows * replicas * (1 + random.below(limits.unitsPerReplica));
    plan.optimizer =
        random.chance(50) ? OptimizerKind::SGD : OptimizerKind::AdamW;
  }

  static int64_t product(const std::vector<int64_t> &sizes) {
    return std::accumulate(sizes.begin(), sizes.end(), int64_t{1},
                           std::multiplies<>());
  }

  // Even (nothing to set), ceil, or any offsets, empty blocks included.
  void drawTables() {
    const int64_t mode = random.below(3);
    if (mode == 0)
      return;
    int64_t largest = 0;
    for (size_t v = 0; v < graph.values.size(); ++v)
      for (const DimStructure &dim : space.structure(static_cast<ValueId>(v)))
        for (const Section &section : dim.sections)
          for (int64_t factor : section.factors)
            largest = std::max(largest, factor);
    std::vector<int64_t> parts;
    for (const MeshAxis &axis : plan.mesh.axes)
      parts.push_back(axis.size);
    std::sort(parts.begin(), parts.end());
    parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
    for (int64_t n : parts)
      for (int64_t extent = 0; extent <= largest; ++extent) {
        std::vector<int64_t> offsets{0};
        if (mode == 1) {
          const int64_t block = (extent + n - 1) / n;
          for (int64_t i = 1; i < n; ++i)
            offsets.push_back(std::min(extent, block * i));
        } else {
          for (int64_t i = 1; i < n; ++i)
            offsets.push_back(random.below(extent + 1));
        }
        offsets.push_back(extent);
        std::sort(offsets.begin(), offsets.end());
        plan.tables.set(extent, n, std::move(offsets));
      }
  }

  void drawStages() {
    plan.stage.assign(graph.ops.size(), 0);
    std::vector<size_t> cuts;
    for (int s = 1; s < plan.stages; ++s)
      cuts.push_back(static_cast<size_t>(
          random.below(static_cast<int64_t>(graph.ops.size()))));
    std::sort(cuts.begin(), cuts.end());
    for (size_t id = 0; id < graph.ops.size(); ++id) {
      const Op &op = graph.ops[id];
      if (op.phase != Phase::Forward)
        continue;
      int stage = static_cast<int>(
          std::lower_bound(cuts.begin(), cuts.end(), id) - cuts.begin());
      if (random.chance(15))
        stage = static_cast<int>(random.below(plan.stages));
      for (ValueId operand : op.operands)
        if (operand != None && graph.values[operand].producer != None &&
            !space.isCloned(graph.values[operand].producer))
          stage = std::max(stage, plan.stage[graph.values[operand].producer]);
      plan.stage[id] = stage;
    }
  }

  void drawChoices() {
    const int splitPercent = random.of(std::vector<int>{30, 70, 95});
    const size_t axes = plan.mesh.axes.size();
    plan.choice.assign(graph.ops.size(), std::vector<int>(axes, 0));
    plan.passPartialCotangent.assign(graph.ops.size(),
                                     std::vector<bool>(axes, false));
    plan.keepGathered.assign(graph.ops.size(), true);
    for (size_t id = 0; id < graph.ops.size(); ++id) {
      const Op &op = graph.ops[id];
      if (op.forward != None)
        continue;
      plan.keepGathered[id] = random.chance(60);
      const auto &choices = space.choices(static_cast<OpId>(id));
      for (size_t t = 0; t < axes; ++t) {
        if (plan.mesh.axes[t].role == AxisRole::Data)
          continue;
        plan.passPartialCotangent[id][t] = random.chance(60);
        if (random.chance(20))
          plan.choice[id][t] = Follow;
        else if (random.chance(splitPercent))
          plan.choice[id][t] = static_cast<int>(
              random.below(static_cast<int64_t>(choices.size())));
      }
    }
  }

  Layout drawLayout(ValueId value) {
    const TensorStructure &structure = space.structure(value);
    Layout layout = Layout::replicated(plan.mesh.axes.size());
    std::vector<int> order = layout.order;
    for (size_t i = order.size(); i > 1; --i)
      std::swap(
          order[i - 1],
          order[static_cast<size_t>(random.below(static_cast<int64_t>(i)))]);
    for (AxisState &state : layout.states) {
      if (structure.empty() || random.chance(50))
        continue;
      const int dim = static_cast<int>(
          random.below(static_cast<int64_t>(structure.size())));
      std::vector<int> factors;
      for (const Section &section : structure[dim].sections)
        factors.push_back(
            section.factors.empty()
                ? -1
                : static_cast<int>(random.below(
                      static_cast<int64_t>(section.factors.size()))));
      if (std::find(factors.begin(), factors.end(), -1) == factors.end())
        state = AxisState::split(dim, std::move(factors));
    }
    layout.order = std::move(order);
    return canonical(std::move(layout));
  }
};

} // namespace

planner::Decisions randomPlan(const StrategySpace &space, uint64_t seed,
                              const RandomPlanLimits &limits) {
  return PlanDrawer(space, seed, limits).draw();
}

std::string describe(const planner::Decisions &decisions) {
  std::string text = std::to_string(decisions.stages) + " stages of [";
  for (const MeshAxis &axis : decisions.mesh.axes)
    text += " " + axis.name + "=" + std::to_string(axis.size);
  return text + " ], " + std::to_string(decisions.globalRows) +
         " rows in units of " + std::to_string(decisions.unitRows) +
         (decisions.tables.exceptions().empty() ? ", even" : ", uneven");
}

} // namespace monarch::test
