//===- PlanFile.h - monarch.plan/1 ----------------------------------------===//
//
// What a plan decides, for which model and cluster, what is predicted and what
// else was looked at. The file is the document itself: fields that this version
// does not know are kept, so write(read(x)) == x. Decisions are glob rules by
// module path; choices are named, so they do not depend on how strategies are
// numbered.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/support/Json.h"
#include "planner/plan/Plan.h"

namespace monarch::planner {

struct PlanFile {
  Json document;
};

/// Who made a decision.
enum class Origin : uint8_t { User, Planner, Default };
std::string_view toString(Origin origin);

/// The "decisions" section, and back. Decisions are in normal form: entries of
/// ops that a plan says nothing about are as `normalised` makes them.
Json compressDecisions(const Decisions &decisions, const StrategySpace &space);
Expected<Decisions> expandDecisions(const PlanFile &plan,
                                    const StrategySpace &space);
/// Backward and cloned ops: stage 0, all axes Follow, nothing passed, all kept;
/// clones keep their choice.
Decisions normalised(Decisions decisions, const StrategySpace &space);

Expected<PlanFile> readPlan(std::string_view text);
std::string writePlan(const PlanFile &plan);
/// SHA-256 over inputs and decisions (of other targets: the layout) alone.
std::string planDigest(const PlanFile &plan);
/// The target whose plans this project compiles and runs. Plans of others hold
/// a "layout" in place of "decisions" (planner/LayoutPlan.h).
inline constexpr std::string_view OwnTarget = "monarch";
std::string targetOf(const PlanFile &plan);
/// Rows of the unit that the plan was made for.
int64_t unitRowsOf(const PlanFile &plan);
/// MP2211, MP2212 (stale): the plan was made for another model or cluster.
/// Digests that are empty are not compared.
std::optional<Error> checkInputs(const PlanFile &plan,
                                 const std::string &graphDigest,
                                 const std::string &clusterDigest);

/// "R", "S(1:0,2)" per axis, and the order where it is not the axes' own.
Json layoutToJson(const Layout &layout);
std::optional<Layout> layoutFromJson(const JsonValue &json);

} // namespace monarch::planner
