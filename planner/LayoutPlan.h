//===- LayoutPlan.h - plans of targets that others run --------------------===//
//
// A plan for Megatron, torchtitan or DeepSpeed is a layout: degrees, schedule,
// sharding, recompute. Its file is a monarch.plan/1 with a "layout" in place of
// "decisions". A plan made from a config.json carries the hyper-parameters, so
// that it can be priced again without the model.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "planner/choose/ChooseLayout.h"
#include "planner/cluster/Cluster.h"
#include "planner/families/ShapeWork.h"
#include "planner/plan/PlanFile.h"
#include "planner/step/Estimate.h"
#include "planner/step/LayoutText.h"

namespace monarch::planner {

struct LayoutPlan {
  std::string target;
  std::string optimizer = "adamw";
  StepLayout layout;
  std::string graphDigest;
  std::string clusterName, clusterDigest;
  /// Nullopt: made from a graph.
  std::optional<ModelShape> shape;
};

/// MP2210 with the place of what is wrong.
Expected<LayoutPlan> readLayoutPlan(const PlanFile &plan);

struct LayoutPlanParts {
  const LayoutPlan &plan;
  const LayoutChoice &choice;
  const LayoutPins &pins;
  const Machine &machine;
  const Target &target;
  const Cluster &cluster;
};
PlanFile planFileOf(const LayoutPlanParts &parts);

} // namespace monarch::planner
