//===- CoarseMesh.h - fewer axes for the search ---------------------------===//
//
// A mesh has an axis for each prime factor, and nearly always several tp axes
// are used alike. The search looks at them as one axis, as far as all
// attentions can split their heads over it evenly; what it finds is written to
// each of the axes. Layouts and costs of a few axes are quick to find.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "planner/search/SplitRules.h"

namespace monarch::planner {

struct CoarseMesh {
  MeshPlan plan;
  /// Per axis of the mesh that it stands for.
  std::vector<int> axisOf;

  std::vector<int> expanded(const std::vector<int> &choice) const;
};

/// `plan` has no data axes.
CoarseMesh coarsen(const SplitRules &rules, const MeshPlan &plan);

} // namespace monarch::planner
