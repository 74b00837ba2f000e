#include "tools/cli/planner/LayoutVerbs.h"

#include "planner/cluster/KnownMachines.h"
#include "planner/step/Advice.h"
#include "tools/cli/planner/Inputs.h"

#include <fmt/format.h>

namespace monarch::cli {

namespace {

/// What the step model does not price for any target but `monarch`.
std::optional<Error> refuseWorkload(const PlanOptions &options) {
  auto refused = [&](std::string what, std::string where, std::string fix) {
    return Error{"MP3320", ExitCode::Infeasible, std::move(what),
                 std::move(where), std::move(fix)};
  };
  constexpr int64_t MostRows = int64_t(1) << 32;
  if (options.globalBatch > MostRows)
    return Error{"MP1815", ExitCode::Usage,
                 fmt::format("a step of {} rows", options.globalBatch),
                 "--global-batch", fmt::format("at most {}", MostRows)};
  if (options.optimizer != "adamw")
    return refused(fmt::format("{} is not priced for {}", options.optimizer,
                               options.target),
                   "--optimizer", "legal: adamw");
  if (options.model.mode != "train")
    return refused(fmt::format("{} is not priced for {}", options.model.mode,
                               options.target),
                   "--mode", "legal: train");
  for (const char *legal : {"", "bfloat16", "float16", "fp8"})
    if (options.dtype == legal)
      return std::nullopt;
  return refused(fmt::format("{} products are not priced for {}", options.dtype,
                             options.target),
                 "--dtype", "legal: bfloat16, float16, fp8");
}

Expected<planner::FixedLayout> pinsOf(const PlanOptions &options) {
  planner::FixedLayout pins;
  if (!options.fix.empty())
    if (auto error = planner::addFixedFields(options.fix, pins))
      return *error;
  if (options.microBatch)
    if (auto error = planner::addFixedFields(
            fmt::format("micro_batch={}", *options.microBatch), pins))
      return *error;
  return pins;
}

} // namespace

void addAdvice(PricedLayout &priced) {
  std::vector<std::string> &remarks = priced.estimate.remarks;
  for (std::string &remark : planner::advice(priced.estimate, priced.work,
                                             priced.machine, priced.target))
    remarks.push_back(std::move(remark));
}

Expected<PricedLayout> priceLayout(const PlanOptions &options,
                                   const Model &model,
                                   const planner::Cluster &cluster) {
  const auto target = planner::findTarget(options.target);
  if (!target)
    return target.error();
  if (auto error = refuseWorkload(options))
    return *error;
  auto pins = pinsOf(options);
  if (!pins)
    return pins.error();
  auto work = workOf(model, target->style);
  if (!work)
    return work.error();
  PricedLayout priced{
      *target,      planner::machineOf(cluster), std::move(*work), *pins, {},
      Json::array()};
  planner::StepLayout layout = planner::pinnedLayout(
      *pins, priced.target, priced.machine, options.globalBatch);
  if (options.dtype == "fp8")
    layout.precision = planner::Precision::Fp8;
  auto estimate =
      planner::estimate(priced.work, priced.machine, priced.target, layout);
  if (!estimate)
    return estimate.error();
  priced.estimate = std::move(*estimate);
  addAdvice(priced);
  return priced;
}

int planLayout(const PlanOptions &options, const Model &model,
               const planner::Cluster &cluster, const Console &console) {
  const auto priced = priceLayout(options, model, cluster);
  if (!priced)
    return console.fail(priced.error());
  if (const planner::Estimate &e = priced->estimate; !e.fits) {
    std::string fix;
    for (const std::string &remark : e.remarks)
      if (remark.starts_with("most effective"))
        fix = remark;
    constexpr double GiB = 1024.0 * 1024 * 1024;
    return console.fail(
        {"MP3323", ExitCode::Infeasible,
         fmt::format("a rank of stage {} needs {:.1f} GiB, a "
                     "device has {:.1f}",
                     e.memory.stage, e.memory.total / GiB, e.usableBytes / GiB),
         cluster.name, fix});
  }
  const auto graph = graphOf(model);
  if (!graph)
    return console.fail(graph.error());
  const planner::LayoutPlan plan{
      options.target, priced->estimate.layout,  digest(*graph),
      cluster.name,   planner::digest(cluster), model.shape};
  const planner::PlanFile file = planner::planFileOf(
      {plan, priced->estimate, priced->machine, priced->target, cluster,
       priced->pins, priced->alternatives});
  return finish(
      planner::summarize(priced->estimate, priced->machine, priced->target),
      planner::writePlan(file), file.document, options.output, console);
}

} // namespace monarch::cli
