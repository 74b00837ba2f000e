//===- Assemble.cpp - from what the search chose to decisions -------------===//
#include "planner/search/Assemble.h"

#include "planner/plan/PlanFile.h"
#include "planner/resolve/DeriveLayouts.h"

namespace monarch::planner {

namespace {

void layParametersAsUsed(const StrategySpace &space, Decisions &decisions) {
  const Graph &graph = space.graph();
  DerivedLayouts derived = deriveLayouts(space, decisions);
  std::vector<int> parameterOf(graph.values.size(), -1);
  for (size_t p = 0; p < graph.parameters.size(); ++p)
    parameterOf[graph.parameters[p].value] = static_cast<int>(p);
  std::vector<bool> done(graph.parameters.size(), false);
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const Op &op = graph.ops[i];
    if (op.phase != Phase::Forward)
      continue;
    for (size_t k = 0; k < op.operands.size(); ++k) {
      if (op.operands[k] == None)
        continue;
      int parameter = parameterOf[op.operands[k]];
      if (parameter < 0 || done[parameter])
        continue;
      done[parameter] = true;
      Layout layout = derived.ops[i].operands[k];
      for (AxisState &state : layout.states)
        if (state.isPartial())
          state = AxisState::replicated();
      decisions.parameterLayout[parameter] = canonical(std::move(layout));
    }
  }
}

} // namespace

Decisions assemble(const StrategySpace &space, const MeshPlan &plan,
                   const std::vector<std::vector<int>> &choice,
                   const std::vector<int> &stage, int stages,
                   const Workload &workload) {
  const Graph &graph = space.graph();
  size_t axes = plan.mesh.axes.size();
  Decisions decisions;
  decisions.mesh = plan.mesh;
  decisions.stages = stages;
  decisions.unitRows = graph.unitRows;
  decisions.globalRows = workload.globalRows;
  decisions.optimizer = workload.optimizer;
  decisions.schedule = workload.schedule;
  decisions.masterWeights = workload.masterWeights;
  decisions.stage = stage;
  decisions.keepGathered.assign(graph.ops.size(), true);
  decisions.parameterLayout.assign(graph.parameters.size(),
                                   Layout::replicated(axes));
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const OpRule *rule = space.rule(static_cast<OpId>(i));
    bool follows =
        graph.ops[i].phase == Phase::Backward || (rule && rule->follows);
    std::vector<int> row(axes, follows ? Follow : 0);
    for (size_t axis = 0; axis < choice[i].size(); ++axis)
      row[plan.dataAxes + axis] = choice[i][axis];
    decisions.choice.push_back(std::move(row));
    decisions.passPartialCotangent.emplace_back(axes, follows);
  }
  layParametersAsUsed(space, decisions);
  return normalised(std::move(decisions), space);
}

} // namespace monarch::planner
