//===- CoarseMesh.cpp - fewer axes for the search -------------------------===//
#include "planner/search/CoarseMesh.h"

#include <algorithm>

namespace monarch::planner {

std::vector<int> CoarseMesh::expanded(const std::vector<int> &choice) const {
  std::vector<int> result;
  if (!choice.empty())
    for (int axis : axisOf)
      result.push_back(choice[axis]);
  return result;
}

namespace {

/// Row axes as one; the first `joined` tp axes as one, and those after them.
CoarseMesh join(const MeshPlan &plan, int joined) {
  CoarseMesh coarse;
  coarse.plan.rowAxes = std::min(plan.rowAxes, 1);
  int tensorBegin = plan.rowAxes;
  for (int axis = 0; axis < static_cast<int>(plan.mesh.axes.size()); ++axis) {
    const MeshAxis &fine = plan.mesh.axes[axis];
    bool extends = (axis > 0 && axis < tensorBegin) ||
                   (axis > tensorBegin && axis != tensorBegin + joined);
    if (extends)
      coarse.plan.mesh.axes.back().size *= fine.size;
    else
      coarse.plan.mesh.axes.push_back(fine);
    coarse.axisOf.push_back(static_cast<int>(coarse.plan.mesh.axes.size()) - 1);
  }
  return coarse;
}

bool splitsAllHeads(const SplitRules &rules, const MeshPlan &plan) {
  std::vector<int> rows;
  return std::all_of(rules.attentionOps().begin(), rules.attentionOps().end(),
                     [&](OpId op) {
                       rows.assign(plan.rowAxes, rules.rowChoice(op));
                       return rules.allowed(op, plan, rows).front() != 0;
                     });
}

} // namespace

CoarseMesh coarsen(const SplitRules &rules, const MeshPlan &plan) {
  for (int joined = plan.tensorAxes(); joined > 1; --joined) {
    CoarseMesh coarse = join(plan, joined);
    if (rules.hasAttention() ? splitsAllHeads(rules, coarse.plan)
                             : rules.canSplit(coarse.plan))
      return coarse;
  }
  return join(plan, 1);
}

} // namespace monarch::planner
