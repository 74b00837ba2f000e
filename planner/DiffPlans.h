//===- DiffPlans.h - what two plans decide and cost, side by side ---------===//
//
// For reviews and CI: decisions first, then figures that moved by more than a
// tolerance, then the inputs that are others. Remarks, alternatives, who made a
// decision and the order of fields are no difference. Needs no model: decisions
// are compared as the rules that the file holds.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "planner/plan/PlanFile.h"

namespace monarch::planner {

/// A field by its name; null where a file does not have it.
struct PlanChange {
  std::string name;
  Json before, after;
  /// Of a figure: by which share of the one before it moved; none from 0.
  std::optional<double> share = std::nullopt;
};

struct PlanDifference {
  std::vector<PlanChange> decisions;
  /// Seconds, bytes and counts that moved by more than the tolerance.
  std::vector<PlanChange> figures;
  /// Digests, model, cluster, workload, pins.
  std::vector<PlanChange> inputs;
  /// Figures that moved, but not by more than the tolerance.
  size_t within = 0;
  bool isSame() const {
    return decisions.empty() && figures.empty() && inputs.empty();
  }
  /// Why they differ, as far as the files say; "": they do not.
  std::string cause() const;
};

/// `tolerance` is a share: 0.01 leaves out what moved by less than 1 %.
PlanDifference diffPlans(const PlanFile &before, const PlanFile &after,
                         double tolerance);

Json toJson(const PlanDifference &difference, double tolerance);
std::string summarize(const PlanDifference &difference, double tolerance);

} // namespace monarch::planner
