#include "tools/cli/planner/LayoutVerbs.h"

#include "planner/cluster/KnownMachines.h"
#include "planner/step/Advice.h"
#include "planner/step/Optimizer.h"
#include "tools/cli/planner/Inputs.h"
#include "tools/cli/planner/SearchWatch.h"

#include <fmt/format.h>
#include <map>

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
  if (!options.masterWeights.empty())
    return refused(
        fmt::format("{} itself says what its optimizer keeps", options.target),
        "--master-weights", "leave it out");
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

/// A pin is honoured or refused: a second value for a name is refused.
Expected<planner::LayoutPins> pinsOf(const PlanOptions &options) {
  std::string text = options.fix;
  if (options.microBatch)
    text += fmt::format("{}micro_batch={}", text.empty() ? "" : ",",
                        *options.microBatch);
  std::map<std::string, std::string> seen;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string item = text.substr(begin, end - begin);
    begin = end + 1;
    const std::string name = item.substr(0, item.find('='));
    const auto [entry, isNew] = seen.try_emplace(name, item);
    if (!isNew && entry->second != item)
      return Error{"MP3101", ExitCode::Usage,
                   fmt::format("{} is fixed twice: {} and {}", name,
                               entry->second, item),
                   "--fix", "fix it once"};
  }
  auto pins = planner::readLayoutPins(text);
  if (!pins) {
    Error error = pins.error();
    error.where = "--fix";
    return error;
  }
  return pins;
}

} // namespace

void addAdvice(const LayoutQuestion &question, planner::Estimate &estimate) {
  for (std::string &remark : planner::advice(estimate, question.work,
                                             question.machine, question.target))
    estimate.remarks.push_back(std::move(remark));
}

Expected<LayoutQuestion> layoutQuestion(const PlanOptions &options,
                                        const Model &model,
                                        const planner::Cluster &cluster) {
  const auto target = planner::findTarget(options.target);
  if (!target)
    return target.error();
  if (auto error = refuseWorkload(options))
    return *error;
  const auto pins = pinsOf(options);
  if (!pins)
    return pins.error();
  planner::Machine machine = planner::machineOf(cluster);
  if (options.dtype == "fp8" && machine.device.fp8PeakFlops == 0)
    return Error{"MP3320", ExitCode::Infeasible,
                 machine.device.name + " has no FP8 products", "--dtype",
                 "legal: bfloat16, float16"};
  auto work = workOf(model, target->style);
  if (!work)
    return work.error();
  // The flag takes no other words.
  const auto optimizer = planner::parseOptimizer(options.optimizer);
  return LayoutQuestion{
      planner::withOptimizer(*target,
                             optimizer.value_or(planner::Optimizer::AdamW)),
      std::move(machine), std::move(*work), *pins,
      options.dtype == "fp8" ? planner::Precision::Fp8
                             : planner::Precision::Half};
}

planner::StepLayout plainLayout(const LayoutQuestion &question,
                                int64_t globalBatch) {
  const planner::LayoutPins &pins = question.pins;
  const planner::Target &target = question.target;
  planner::StepLayout layout;
  layout.tp = pins.tp.value_or(1);
  layout.pp = pins.pp.value_or(1);
  layout.cp = pins.cp.value_or(1);
  layout.ep = pins.ep.value_or(1);
  layout.chunks = pins.chunks.value_or(1);
  const int64_t others = layout.tp * layout.pp * layout.cp;
  layout.dp =
      pins.dp.value_or(std::max<int64_t>(1, question.machine.devices / others));
  layout.globalBatch = globalBatch;
  layout.microBatch = pins.microBatch.value_or(1);
  layout.isSequenceParallel = pins.isSequenceParallel.value_or(
      target.defaultsToSequenceParallel && layout.tp > 1);
  layout.sharding = pins.sharding.value_or(target.maxSharding);
  layout.shardGroup = pins.shardGroup.value_or(0);
  layout.offloadsOptimizer = pins.offloadsOptimizer.value_or(false);
  layout.recompute = pins.recompute.value_or(planner::Recompute::None);
  layout.schedule =
      pins.schedule.value_or(planner::Schedule::OneForwardOneBackward);
  layout.stageLayers = pins.stageLayers;
  layout.precision = question.precision;
  return layout;
}

int planLayout(const PlanOptions &options, const Model &model,
               const planner::Cluster &cluster, const Console &console) {
  const auto question = layoutQuestion(options, model, cluster);
  if (!question)
    return console.fail(question.error());
  planner::LayoutRequest request;
  request.globalBatch = options.globalBatch;
  request.pins = question->pins;
  request.precision = question->precision;
  SearchWatch watch(options.limit);
  request.onProgress = [&](const planner::SearchProgress &progress) {
    return watch.goesOn(progress);
  };
  auto choice = planner::chooseLayout(question->work, question->machine,
                                      question->target, request);
  watch.clear();
  if (!choice)
    return console.fail(watch.error(choice.error()));
  addAdvice(*question, choice->best);
  const auto graph = graphOf(model);
  if (!graph)
    return console.fail(graph.error());
  const planner::LayoutPlan plan{options.target,      options.optimizer,
                                 choice->best.layout, digest(*graph),
                                 cluster.name,        planner::digest(cluster),
                                 model.shape};
  const planner::PlanFile file =
      planner::planFileOf({plan, *choice, question->pins, question->machine,
                           question->target, cluster});
  return watch.exitCode(
      finish(planner::summarize(*choice, question->machine, question->target),
             planner::writePlan(file), file.document, options.output, console));
}

} // namespace monarch::cli
