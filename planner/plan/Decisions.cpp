//===- Decisions.cpp - the one-process plan, and what makes a plan legal --===//
#include "core/program/Verify.h"
#include "planner/plan/Plan.h"

#include <algorithm>
#include <fmt/format.h>

namespace monarch::planner {

std::string_view toString(ScheduleKind kind) {
  return kind == ScheduleKind::GPipe ? "gpipe" : "1f1b";
}

bool operator==(const Decisions &a, const Decisions &b) {
  return a.mesh == b.mesh && a.tables.exceptions() == b.tables.exceptions() &&
         a.stages == b.stages && a.unitRows == b.unitRows &&
         a.globalRows == b.globalRows && a.optimizer == b.optimizer &&
         a.masterWeights == b.masterWeights && a.schedule == b.schedule &&
         a.stage == b.stage && a.choice == b.choice &&
         a.passPartialCotangent == b.passPartialCotangent &&
         a.keepGathered == b.keepGathered &&
         a.parameterLayout == b.parameterLayout;
}

Decisions oneProcess(const Graph &graph, const StrategySpace &,
                     int64_t globalRows) {
  Decisions decisions;
  decisions.unitRows = graph.unitRows;
  decisions.globalRows = globalRows;
  decisions.stage.assign(graph.ops.size(), 0);
  decisions.choice.assign(graph.ops.size(), {});
  decisions.passPartialCotangent.assign(graph.ops.size(), {});
  decisions.keepGathered.assign(graph.ops.size(), true);
  decisions.parameterLayout.assign(graph.parameters.size(),
                                   Layout::replicated(0));
  return decisions;
}

bool carriesBuffers(const Graph &graph) {
  return std::any_of(
      graph.buffers.begin(), graph.buffers.end(),
      [](const Buffer &buffer) { return buffer.updated != None; });
}

namespace {

class Checker {
public:
  Checker(const Decisions &decisions, const StrategySpace &space)
      : decisions(decisions), space(space), graph(space.graph()) {}

  std::vector<Error> run() {
    checkRows();
    if (checkSizes()) {
      for (OpId id = 0; id < static_cast<OpId>(graph.ops.size()); ++id)
        checkOp(id);
      checkParameters();
    }
    return std::move(errors);
  }

private:
  void add(std::string what, std::string where = "", std::string fix = "") {
    errors.push_back(Error{"MP2201", ExitCode::BadInput, std::move(what),
                           std::move(where), std::move(fix)});
  }

  void checkRows() {
    if (decisions.stages < 1)
      add("a plan has at least one stage");
    if (decisions.stages >
        static_cast<int>(std::max<size_t>(1, graph.ops.size())))
      add("a plan has no more stages than the graph has ops");
    if (ranks() > MaxRanks) {
      add(fmt::format("a plan is for at most {} ranks", MaxRanks));
      return;
    }
    if (decisions.unitRows != graph.unitRows)
      add(fmt::format("the plan's unit has {} rows, the graph's {}",
                      decisions.unitRows, graph.unitRows));
    int64_t replicas = 1;
    bool tensorSeen = false;
    for (const MeshAxis &axis : decisions.mesh.axes) {
      if (axis.size < 2)
        add(fmt::format("mesh axis {} has size {}", axis.name, axis.size));
      if (axis.role == AxisRole::Data) {
        replicas *= axis.size;
        if (tensorSeen)
          add(fmt::format("data axis {} stands after a tensor axis",
                          axis.name));
      }
      tensorSeen |= axis.role == AxisRole::Tensor;
    }
    if (replicas > 1 && carriesBuffers(graph))
      add("buffers change from unit to unit, so one replica runs all units", "",
          "split rows inside the units, or use tensor or pipeline parallelism");
    int64_t rows = decisions.unitRows * replicas;
    if (rows < 1 || decisions.globalRows < 1 ||
        decisions.globalRows % rows != 0)
      add(fmt::format("a global batch of {} rows is not a whole number of "
                      "units of {} rows on each of {} replicas",
                      decisions.globalRows, decisions.unitRows, replicas));
  }

  /// Stops counting above the limit, so that no plan file overflows it.
  int64_t ranks() const {
    int64_t ranks = decisions.stages;
    for (const MeshAxis &axis : decisions.mesh.axes)
      if (ranks <= MaxRanks)
        ranks *= std::clamp<int64_t>(axis.size, 1, MaxRanks + 1);
    return ranks;
  }

  bool checkSizes() {
    size_t ops = graph.ops.size();
    bool good = decisions.stage.size() == ops &&
                decisions.choice.size() == ops &&
                decisions.passPartialCotangent.size() == ops &&
                decisions.keepGathered.size() == ops &&
                decisions.parameterLayout.size() == graph.parameters.size();
    if (!good)
      add("the plan's tables do not have the graph's ops and parameters");
    return good;
  }

  void checkOp(OpId id) {
    const Op &op = graph.op(id);
    std::string where = originText(op.module, op.source);
    bool isSum = op.phase == Phase::Backward && op.forward == None;
    if (op.phase == Phase::Backward && !isSum)
      return;
    checkChoices(id, op, where);
    if (isSum || space.isCloned(id))
      return;
    int stage = decisions.stage[id];
    if (stage < 0 || stage >= decisions.stages)
      return add(fmt::format("{} is in stage {} of {}", op.name, stage,
                             decisions.stages),
                 where);
    for (ValueId operand : op.operands) {
      if (operand == None)
        continue;
      OpId producer = graph.value(operand).producer;
      if (producer != None && !space.isCloned(producer) &&
          decisions.stage[producer] > stage)
        add(fmt::format("{} is in stage {} but reads what stage {} makes",
                        op.name, stage, decisions.stage[producer]),
            where, "an op's stage is at least its producers'");
    }
  }

  void checkChoices(OpId id, const Op &op, const std::string &where) {
    const std::vector<int> &row = decisions.choice[id];
    size_t axes = decisions.mesh.axes.size();
    bool passes = op.phase == Phase::Forward;
    if (row.size() != axes ||
        (passes && decisions.passPartialCotangent[id].size() != axes))
      return add(fmt::format("{} has choices for {} of {} axes", op.name,
                             row.size(), axes),
                 where);
    int count = static_cast<int>(space.choices(id).size());
    for (size_t axis = 0; axis < axes; ++axis) {
      const MeshAxis &meshAxis = decisions.mesh.axes[axis];
      if (row[axis] < Follow || row[axis] >= count)
        add(fmt::format("{} has no choice {} on axis {}", op.name, row[axis],
                        meshAxis.name),
            where);
      else if (meshAxis.role == AxisRole::Data && row[axis] > 0)
        add(fmt::format("{} is split on data axis {}", op.name, meshAxis.name),
            where, "data axes hand out units; ops are whole there");
    }
  }

  void checkParameters() {
    for (size_t i = 0; i < graph.parameters.size(); ++i) {
      const Layout &layout = decisions.parameterLayout[i];
      const std::string &name = graph.parameters[i].names[0];
      if (layout.states.size() != decisions.mesh.axes.size())
        add("the layout does not have the mesh's axes", name);
      else if (std::any_of(layout.states.begin(), layout.states.end(),
                           [](const AxisState &s) { return s.isPartial(); }))
        add("a parameter at rest is never partial", name);
      else if (layout != canonical(layout))
        add("the layout's order is not canonical", name);
    }
  }

  const Decisions &decisions;
  const StrategySpace &space;
  const Graph &graph;
  std::vector<Error> errors;
};

} // namespace

std::vector<Error> check(const Decisions &decisions,
                         const StrategySpace &space) {
  return Checker(decisions, space).run();
}

} // namespace monarch::planner
