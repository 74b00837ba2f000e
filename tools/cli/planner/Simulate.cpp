// simulate: a plan or a model priced on another cluster, with slow ranks and
// links, and its schedule as a trace.
#include "core/support/Files.h"
#include "planner/Planner.h"
#include "planner/cluster/KnownMachines.h"
#include "planner/resolve/Resolve.h"
#include "planner/step/Optimizer.h"
#include "tools/cli/planner/Inputs.h"
#include "tools/cli/planner/LayoutVerbs.h"

#include <charconv>
#include <fmt/format.h>

namespace monarch::cli {

namespace {

Error usage(std::string what, const char *where, std::string fix) {
  return {"MP1812", ExitCode::Usage, std::move(what), where, std::move(fix)};
}

/// "KEY=NUMBER"; the number above zero.
std::optional<std::pair<std::string, double>>
parseFactor(const std::string &text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    return std::nullopt;
  double value = 0;
  const char *begin = text.data() + equals + 1,
             *end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(begin, end, value);
  constexpr double Least = 1e-3, Most = 1e3;
  if (failure != std::errc() || rest != end || !(value >= Least) ||
      !(value <= Most))
    return std::nullopt;
  return std::pair(text.substr(0, equals), value);
}

std::optional<Error> addSlowRanks(const std::vector<std::string> &texts,
                                  planner::Machine &machine) {
  for (const std::string &text : texts) {
    const auto factor = parseFactor(text);
    int64_t rank = -1;
    if (factor) {
      const std::string &key = factor->first;
      const auto [end, failure] =
          std::from_chars(key.data(), key.data() + key.size(), rank);
      if (failure != std::errc() || end != key.data() + key.size())
        rank = -1;
    }
    if (rank < 0 || rank >= machine.devices || factor->second < 1)
      return usage(fmt::format("'{}' is no slow rank", text), "--slow-rank",
                   fmt::format("write RANK=FACTOR with a rank from 0 to {} and "
                               "a factor from 1 up, as 3=1.3",
                               machine.devices - 1));
    machine.slowRanks[rank] = factor->second;
  }
  return std::nullopt;
}

std::optional<Error> addSlowLinks(const std::vector<std::string> &texts,
                                  planner::Cluster &cluster) {
  std::string names;
  for (const planner::LinkLevel &level : cluster.levels)
    names += (names.empty() ? "" : ", ") + level.name;
  for (const std::string &text : texts) {
    const auto factor = parseFactor(text);
    planner::LinkLevel *found = nullptr;
    for (planner::LinkLevel &level : cluster.levels)
      if (factor && level.name == factor->first)
        found = &level;
    if (!found)
      return usage(fmt::format("'{}' is no slow link", text), "--slow-link",
                   fmt::format("write LEVEL=SHARE, as nic=0.5; levels of {} "
                               "are {}",
                               cluster.name, names));
    found->bytesPerSecond = std::max<int64_t>(
        1, static_cast<int64_t>(static_cast<double>(found->bytesPerSecond) *
                                factor->second));
  }
  return std::nullopt;
}

/// What it would be without the replica of the slowest rank: a whole group
/// less.
std::optional<std::string> withoutSlowest(const LayoutQuestion &question,
                                          const planner::Estimate &slow) {
  const planner::StepLayout &layout = slow.layout;
  if (question.machine.slowRanks.empty() || layout.dp < 2)
    return std::nullopt;
  planner::Machine machine = question.machine;
  machine.slowRanks.clear();
  planner::StepLayout smaller = layout;
  smaller.dp = layout.dp - 1;
  smaller.globalBatch = layout.globalBatch / layout.dp * smaller.dp;
  smaller.shardGroup = 0;
  machine.devices = smaller.devices();
  const auto estimate =
      planner::estimate(question.work, machine, question.target, smaller);
  if (!estimate)
    return std::nullopt;
  const double share = estimate->tokensPerSecond / slow.tokensPerSecond;
  return fmt::format(
      "without the slow rank's replica (dp {}, {} rows a step): {:.0f} "
      "tokens/s, {:+.0f} %: {}",
      smaller.dp, smaller.globalBatch, estimate->tokensPerSecond,
      100 * (share - 1), share > 1 ? "drop it" : "keep it");
}

struct Before {
  double seconds = 0;
  std::string cluster;
};

int sayLayout(const SimulateOptions &options, LayoutQuestion &question,
              const planner::StepLayout &layout,
              const planner::Cluster &cluster,
              const std::optional<Before> &before, const Console &console) {
  if (auto error = addSlowRanks(options.slowRanks, question.machine))
    return console.fail(*error);
  auto estimate = planner::estimate(question.work, question.machine,
                                    question.target, layout);
  if (!estimate)
    return console.fail(estimate.error());
  addAdvice(question, *estimate);
  if (const auto remark = withoutSlowest(question, *estimate))
    estimate->remarks.push_back(*remark);
  if (before)
    estimate->remarks.push_back(fmt::format(
        "re-costed: every figure is new; the plan said {:.4g} s on {}, {:+.1f} "
        "% now",
        before->seconds, before->cluster,
        100 * (estimate->time.seconds / before->seconds - 1)));
  if (!options.trace.empty()) {
    const auto run = planner::scheduleOf(*estimate, question.work,
                                         question.machine, question.target);
    if (!run)
      return console.fail(run.error());
    if (const auto error = writeFile(options.trace, planner::traceOf(*run)))
      return console.fail(*error);
  }
  Json document = planner::toJson(*estimate, question.machine, question.target);
  document["layout"] = planner::layoutToJson(estimate->layout);
  document["cluster"] = cluster.name;
  document["recosted"] = before.has_value();
  console.result(
      planner::summarize(*estimate, question.machine, question.target),
      document);
  return static_cast<int>(ExitCode::Ok);
}

/// A plan of another target, from its own hyper-parameters or a model.
int simulateLayoutPlan(const SimulateOptions &options,
                       const planner::PlanFile &file,
                       const planner::Cluster &cluster,
                       const ModelLoader &loader, const Console &console) {
  auto plan = planner::readLayoutPlan(file);
  if (!plan) {
    Error error = plan.error();
    error.where = options.subject + ", " + error.where;
    return console.fail(error);
  }
  Model model{plan->shape, std::nullopt};
  if (!options.planModel.empty()) {
    ModelOptions modelOptions = options.plan.model;
    modelOptions.model = options.planModel;
    auto loaded = loadPlannerModel(
        {modelOptions, options.plan.sequence, options.plan.dtype}, loader);
    if (!loaded)
      return console.fail(loaded.error());
    model = std::move(*loaded);
  } else if (options.plan.sequence && model.shape) {
    model.shape->sequence = *options.plan.sequence;
  }
  if (!model.shape && !model.graph)
    return console.fail(
        usage("the plan does not hold its model", "PLAN",
              "write monarch-plan simulate PLAN MODEL --cluster C"));
  const auto target = planner::findTarget(plan->target);
  if (!target)
    return console.fail(target.error());
  auto work = workOf(model, target->style);
  if (!work)
    return console.fail(work.error());
  const auto optimizer = planner::parseOptimizer(plan->optimizer);
  LayoutQuestion question{
      planner::withOptimizer(*target,
                             optimizer.value_or(planner::Optimizer::AdamW)),
      planner::machineOf(cluster),
      std::move(*work),
      {},
      plan->layout.precision};
  if (options.plan.globalBatch > 0)
    plan->layout.globalBatch = options.plan.globalBatch;
  std::optional<Before> before;
  const Json prediction = file.document.value("prediction", Json::object());
  if (prediction.is_object() && prediction.contains("step_seconds") &&
      prediction["step_seconds"].is_number() && prediction["step_seconds"] > 0)
    before = {prediction["step_seconds"], plan->clusterName};
  return sayLayout(options, question, plan->layout, cluster, before, console);
}

/// A plan of this project: its program, priced on the cluster.
int simulateOwnPlan(const SimulateOptions &options,
                    const planner::PlanFile &file,
                    const planner::Cluster &cluster, const ModelLoader &loader,
                    const Console &console) {
  if (!options.slowRanks.empty() || !options.trace.empty())
    return console.fail(
        {"MP3321", ExitCode::Unsupported,
         "slow ranks and traces are of plans for other targets",
         options.subject,
         "leave out --slow-rank and --trace, or plan with --target megatron"});
  if (options.planModel.empty())
    return console.fail(
        usage("the plan does not hold its model", "PLAN",
              "write monarch-plan simulate PLAN MODEL --cluster C"));
  ModelOptions modelOptions = options.plan.model;
  modelOptions.model = options.planModel;
  const auto model = loadPlannerModel(
      {modelOptions, options.plan.sequence, options.plan.dtype}, loader);
  if (!model)
    return console.fail(model.error());
  auto graph = graphOf(*model);
  if (!graph)
    return console.fail(graph.error());
  if (auto error = planner::checkInputs(file, digest(*graph), ""))
    return console.fail(*error);
  auto unit = withUnitRows(*graph, planner::unitRowsOf(file));
  if (!unit)
    return console.fail(unit.error());
  const StrategySpace space(*unit);
  const auto decisions = planner::expandDecisions(file, space);
  if (!decisions)
    return console.fail(decisions.error());
  const int64_t ranks = decisions->mesh.size() * decisions->stages;
  if (ranks > cluster.deviceCount())
    return console.fail(
        {"MP3322", ExitCode::Infeasible,
         fmt::format("the plan is for {} devices, {} has {}", ranks,
                     cluster.name, cluster.deviceCount()),
         "--cluster", "give a cluster that is large enough"});
  const auto resolved = planner::resolve(space, *decisions);
  if (!resolved)
    return console.fail(resolved.error());
  const auto price = planner::price(resolved->program, cluster);
  if (!price)
    return console.fail(price.error());
  constexpr double Picosecond = 1e-12;
  const double seconds =
      static_cast<double>(price->stepPicoseconds) * Picosecond;
  Json document;
  document["cluster"] = cluster.name;
  document["recosted"] = true;
  document["step_seconds"] = rounded(seconds);
  document["stages"] = Json::array();
  std::string text =
      fmt::format("step    {:.4g} s on {}, re-costed\n", seconds, cluster.name);
  for (size_t s = 0; s < price->stages.size(); ++s) {
    const planner::StageTime &time = price->stages[s];
    auto part = [&](int64_t picoseconds) {
      return rounded(static_cast<double>(picoseconds) * Picosecond);
    };
    document["stages"].push_back(
        {{"forward_seconds", part(time.forwardPicoseconds)},
         {"backward_seconds", part(time.backwardPicoseconds)},
         {"step_seconds", part(time.stepPicoseconds)},
         {"collective_seconds", part(time.collectivePicoseconds)},
         {"idle_seconds", part(time.idlePicoseconds)}});
    text += fmt::format("stage {} forward {:.3g} s, backward {:.3g} s, update "
                        "{:.3g} s, idle {:.3g} s\n",
                        s, part(time.forwardPicoseconds),
                        part(time.backwardPicoseconds),
                        part(time.stepPicoseconds), part(time.idlePicoseconds));
  }
  console.result(text, document);
  return static_cast<int>(ExitCode::Ok);
}

int simulateModel(const SimulateOptions &options,
                  const planner::Cluster &cluster, const ModelLoader &loader,
                  const Console &console) {
  PlanOptions plan = options.plan;
  plan.model.model = options.subject;
  if (!options.planModel.empty())
    return console.fail(usage("two models", "MODEL",
                              "give a plan and its model, or a model alone"));
  if (plan.target == planner::OwnTarget)
    return console.fail(
        usage("a model is simulated for a target of its layout", "--target",
              "give --target megatron, torchtitan, deepspeed, ..., or a plan"));
  if (plan.globalBatch < 1)
    return console.fail(usage("a model has no batch", "--global-batch",
                              "give --global-batch ROWS"));
  const auto model =
      loadPlannerModel({plan.model, plan.sequence, plan.dtype}, loader);
  if (!model)
    return console.fail(model.error());
  auto question = layoutQuestion(plan, *model, cluster);
  if (!question)
    return console.fail(question.error());
  return sayLayout(options, *question, plainLayout(*question, plan.globalBatch),
                   cluster, std::nullopt, console);
}

} // namespace

int simulate(const SimulateOptions &options, const ModelLoader &loader,
             const Console &console) {
  const auto plan = readIfPlan(options.subject);
  if (!plan)
    return console.fail(plan.error());
  std::string clusterName = options.plan.cluster;
  // The plan's own cluster, where that is a preset.
  if (clusterName.empty() && *plan)
    clusterName = clusterNameOf(**plan);
  if (clusterName.empty())
    return console.fail(
        usage("no cluster", "--cluster", "give --cluster CLUSTER"));
  auto cluster = loadCluster(clusterName);
  if (!cluster)
    return console.fail(cluster.error());
  if (auto error = addSlowLinks(options.slowLinks, *cluster))
    return console.fail(*error);
  if (!*plan)
    return simulateModel(options, *cluster, loader, console);
  return planner::targetOf(**plan) == planner::OwnTarget
             ? simulateOwnPlan(options, **plan, *cluster, loader, console)
             : simulateLayoutPlan(options, **plan, *cluster, loader, console);
}

} // namespace monarch::cli
