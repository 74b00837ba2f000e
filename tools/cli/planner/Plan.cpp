// plan: op by op for `monarch`, which this project runs; a layout for targets
// that others run.
#include "planner/Planner.h"
#include "tools/cli/planner/Inputs.h"
#include "tools/cli/planner/LayoutVerbs.h"
#include "tools/cli/planner/PlanKinds.h"
#include "tools/cli/planner/SearchWatch.h"

namespace monarch::cli {
namespace {

/// --dtype is of a config.json, which does not fix it.
std::optional<Error> checkType(const PlanOptions &options) {
  const bool isFp8 =
      options.dtype == "fp8" &&
      (options.target != planner::OwnTarget || options.model.mode == "infer");
  const auto type = parseDType(options.dtype);
  if (options.dtype.empty() || isFp8 || (type && isFloating(*type)))
    return std::nullopt;
  return Error{"MP1811", ExitCode::Usage,
               "'" + options.dtype + "' is no type of products", "--dtype",
               "write bfloat16, float16, float32, or fp8 for targets that have "
               "it"};
}

int planOps(const PlanOptions &options, const Model &model,
            const planner::Cluster &cluster, const Console &console) {
  auto request = planRequestOf(options);
  if (!request)
    return console.fail(request.error());
  const auto graph = graphOf(model);
  if (!graph)
    return console.fail(graph.error());
  SearchWatch watch(options.limit);
  request->onProgress = [&](const planner::PlanProgress &progress) {
    return watch.goesOn(progress);
  };
  // The planner brings the graph to the unit that it chooses.
  const auto result = planner::makePlan(*graph, cluster, *request);
  watch.clear();
  if (!result)
    return console.fail(watch.error(result.error()));
  const planner::PlanFile file =
      planner::planFileOf(*result, *graph, cluster, *request);
  return watch.exitCode(finish(planner::summarize(*result, cluster),
                               planner::writePlan(file), file.document,
                               options.output, console));
}

} // namespace

int plan(const PlanOptions &options, const ModelLoader &loader,
         const Console &console) {
  if (options.target != planner::OwnTarget)
    if (const auto target = planner::findTarget(options.target); !target)
      return console.fail(target.error());
  if (const auto error = checkType(options))
    return console.fail(*error);
  const auto cluster = loadClusterParts(options.cluster);
  if (!cluster)
    return console.fail(cluster.error());
  if (const auto code = planTablesIfAny(options, *cluster, console))
    return *code;
  const auto model = loadPlannerModel(
      {options.model, options.sequence, options.dtype, /*mayServe=*/true},
      loader);
  if (!model)
    return console.fail(model.error());
  if (!options.dtype.empty() && !model->shape && options.dtype != "fp8")
    return console.fail({"MP1811", ExitCode::Usage,
                         "--dtype is for a config.json: a model file has its "
                         "types",
                         options.model.model, "leave out --dtype"});
  if (options.model.mode == "infer" && model->shape)
    return planServing(options, *model, *cluster, console);
  if (cluster->parts.size() > 1)
    return planMixed(options, *model, *cluster, console);
  const planner::Cluster &only = cluster->parts.front();
  return options.target == planner::OwnTarget
             ? planOps(options, *model, only, console)
             : planLayout(options, *model, only, console);
}

} // namespace monarch::cli
