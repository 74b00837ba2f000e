//===- LayoutVerbs.h - plans for targets that others run ------------------===//
#pragma once

#include "planner/LayoutPlan.h"
#include "tools/cli/planner/Model.h"

namespace monarch::cli {

/// A model, a target, a cluster and what is fixed.
struct LayoutQuestion {
  planner::Target target;
  planner::Machine machine;
  planner::ModelWork work;
  planner::LayoutPins pins;
  planner::Precision precision = planner::Precision::Half;
};

/// What --target, --fix, --micro-batch and --dtype ask, of a model.
Expected<LayoutQuestion> layoutQuestion(const PlanOptions &options,
                                        const Model &model,
                                        const planner::Cluster &cluster);

/// The layout that the pins say, without a search: what is not fixed is as
/// small as it can be, devices that are left go to dp, sharding and sequence
/// parallelism are as is usual for the target. Need not be legal.
planner::StepLayout plainLayout(const LayoutQuestion &question,
                                int64_t globalBatch);

/// Adds what the figures mean to the remarks of the estimate.
void addAdvice(const LayoutQuestion &question, planner::Estimate &estimate);

int planLayout(const PlanOptions &options, const Model &model,
               const planner::Cluster &cluster, const Console &console);

} // namespace monarch::cli
