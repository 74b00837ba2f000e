//===- LayoutVerbs.h - plans for targets that others run ------------------===//
#pragma once

#include "planner/LayoutPlan.h"
#include "tools/cli/planner/Model.h"

namespace monarch::cli {

/// A model, priced for a target on a cluster.
struct PricedLayout {
  planner::Target target;
  planner::Machine machine;
  planner::ModelWork work;
  planner::FixedLayout pins;
  planner::Estimate estimate;
  Json alternatives = Json::array();
};

/// What --target, --fix, --micro-batch and --dtype ask, of a model.
Expected<PricedLayout> priceLayout(const PlanOptions &options,
                                   const Model &model,
                                   const planner::Cluster &cluster);

/// Adds what the figures mean to the remarks of the estimate.
void addAdvice(PricedLayout &priced);

int planLayout(const PlanOptions &options, const Model &model,
               const planner::Cluster &cluster, const Console &console);

} // namespace monarch::cli
