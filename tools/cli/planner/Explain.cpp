// explain: why this plan, why not that one, what binds, what if the machine
// were a fifth better or worse.
#include "planner/ExplainPlan.h"

#include "planner/choose/Compare.h"
#include "tools/cli/planner/Inputs.h"
#include "tools/cli/planner/LayoutVerbs.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace monarch::cli {

namespace {

constexpr size_t FamiliesNamed = 5;

Error usage(std::string what, const char *where, std::string fix) {
  return {"MP1816", ExitCode::Usage, std::move(what), where, std::move(fix)};
}

/// The pins that a plan was made with, as a user writes them.
std::string pinsOf(const planner::PlanFile &file) {
  // A plan's inputs are an object: its reader looks.
  const Json &inputs = file.document["inputs"];
  std::vector<std::string> words;
  if (inputs.contains("pins") && inputs["pins"].is_object())
    for (const auto &[name, value] : inputs["pins"].items())
      words.push_back(
          name + "=" +
          (value.is_string() ? value.get<std::string>() : value.dump()));
  return fmt::format("{}", fmt::join(words, ","));
}

/// Batch and optimizer of the plan, where the options do not say.
std::optional<Error> takeWorkload(const planner::PlanFile &file,
                                  const std::string &path, PlanOptions &plan) {
  JsonDocument document{file.document, path, "MP2210", ExitCode::BadInput,
                        "plan again with this version"};
  const JsonValue workload = JsonValue(document)["inputs"]["workload"];
  const int64_t rows = workload["global_batch"].integer();
  plan.optimizer = workload["optimizer"].string();
  if (plan.globalBatch == 0)
    plan.globalBatch = rows;
  return document.error;
}

/// "tp 2 (user), pp 1 (planner), ...".
std::string sourcesOf(const std::vector<planner::LayoutDecision> &decisions) {
  constexpr const char *By[] = {"user", "planner", "default"};
  std::vector<std::string> words;
  for (const planner::LayoutDecision &decision : decisions)
    words.push_back(fmt::format("{} {} ({})", decision.name, decision.value,
                                By[static_cast<size_t>(decision.by)]));
  return fmt::format("{}", fmt::join(words, ", "));
}

/// "compute 1.21 s (81 %), pipeline bubble 0.15 s (10 %)": what a step is made
/// of, the longest first.
std::string partsOfStep(const planner::StepTime &time) {
  auto parts = planner::partsOf(time);
  std::stable_sort(
      parts.begin(), parts.end(),
      [](const auto &a, const auto &b) { return a.second > b.second; });
  std::vector<std::string> words;
  for (const auto &[name, seconds] : parts)
    if (const double share = seconds / time.seconds; share >= 0.001)
      words.push_back(
          fmt::format("{} {:.3g} s ({:.1f} %)", name, seconds, 100 * share));
  return fmt::format("{}", fmt::join(words, ", "));
}

int explainLayout(const ExplainOptions &options, const PlanOptions &plan,
                  const Model &model, const planner::Cluster &cluster,
                  const std::optional<planner::StepLayout> &planned,
                  const Console &console) {
  auto question = layoutQuestion(plan, model, cluster);
  if (!question)
    return console.fail(question.error());
  if (planned)
    question->precision = planned->precision;
  std::vector<planner::LayoutPins> asked;
  for (const std::string &text : options.whyNot) {
    auto pins = planner::readLayoutPins(text);
    if (!pins) {
      Error error = pins.error();
      error.where = "--why-not";
      return console.fail(error);
    }
    asked.push_back(std::move(*pins));
  }
  planner::LayoutRequest request;
  request.globalBatch = plan.globalBatch;
  request.pins = question->pins;
  request.precision = question->precision;
  request.alternatives = FamiliesNamed;
  const auto &[target, machine, work, pins, precision] = *question;
  const auto choice = planner::chooseLayout(work, machine, target, request);
  if (!choice)
    return console.fail(choice.error());

  std::vector<planner::WhyNot> answers;
  for (const planner::LayoutPins &instead : asked)
    answers.push_back(
        planner::whyNot(work, machine, target, request, *choice, instead));
  const auto neighbours =
      planner::whyThis(work, machine, target, request, *choice);
  const auto figures =
      planner::sensitivity(work, machine, target, request, *choice);
  const planner::Binding binding = planner::firstBinding(*choice, figures);

  const planner::Estimate &best = choice->best;
  Json document = planner::toJson(*choice, machine, target);
  document["cluster"] = cluster.name;
  document["binding"] = {{"what", binding.what}, {"reason", binding.reason}};
  for (const char *name : {"why_not", "neighbours", "sensitivity"})
    document[name] = Json::array();
  for (const planner::WhyNot &answer : answers)
    document["why_not"].push_back(planner::toJson(answer));
  for (const planner::WhyNot &answer : neighbours)
    document["neighbours"].push_back(planner::toJson(answer));
  for (const planner::Sensitivity &entry : figures)
    document["sensitivity"].push_back(planner::toJson(entry));

  std::string text = planner::summarize(answers);
  if (!text.empty())
    text += "\n";
  text += fmt::format("chosen    {}: {:.4g} s a step\n",
                      planner::shortName(best.layout), best.time.seconds);
  text += "step      " + partsOfStep(best.time) + "\n";
  text += "decided   " + sourcesOf(choice->decisions) + "\n";
  if (planned &&
      planner::shortName(*planned) != planner::shortName(best.layout)) {
    const auto own = planner::estimate(work, machine, target, *planned);
    if (!own)
      return console.fail(own.error());
    const std::string reason = planner::whyLost(*own, best);
    document["planned"] = {{"layout", planner::layoutJson(*planned)},
                           {"reason", reason}};
    text +=
        fmt::format("the plan  {}: {}\n", planner::shortName(*planned), reason);
  }
  text += fmt::format("binds     {}: {}\n", binding.what, binding.reason);
  text += "\nother families\n";
  for (const planner::LayoutFamily &family : choice->alternatives)
    text += fmt::format("not {}: {}\n", planner::shortName(family.best.layout),
                        family.reason);
  text += "\none decision changed\n" + planner::summarize(neighbours);
  text += "\none figure changed\n" + planner::summarize(figures, *choice);
  console.result(text, document);
  return static_cast<int>(ExitCode::Ok);
}

/// `planned`: the plan that is explained, where there is one.
int explainOps(const ExplainOptions &options, const PlanOptions &plan,
               const Model &model, const planner::Cluster &cluster,
               const planner::PlanFile *planned, const Console &console) {
  const auto request = planRequestOf(plan);
  if (!request)
    return console.fail(request.error());
  const auto graph = graphOf(model);
  if (!graph)
    return console.fail(graph.error());
  if (planned)
    if (auto error = planner::checkInputs(*planned, digest(*graph), ""))
      return console.fail(*error);
  const auto result = planner::makePlan(*graph, cluster, *request);
  if (!result)
    return console.fail(result.error());
  std::string text;
  Json answers = Json::array();
  for (const std::string &instead : options.whyNot) {
    const auto answer =
        planner::whyNot(*graph, cluster, *request, *result, instead);
    if (!answer) {
      Error error = answer.error();
      error.where = "--why-not";
      return console.fail(error);
    }
    text += planner::summarize(*answer);
    answers.push_back(planner::toJson(*answer));
  }
  const auto figures = planner::sensitivity(*result, cluster);
  if (!figures)
    return console.fail(figures.error());
  const planner::Binding binding = planner::firstBinding(*result, *figures);

  const planner::PlanFile file =
      planner::planFileOf(*result, *graph, cluster, *request);
  Json document;
  for (const char *name :
       {"target", "degrees", "origins", "prediction", "search", "alternatives"})
    document[name] = file.document[name];
  document["cluster"] = cluster.name;
  document["binding"] = {{"what", binding.what}, {"reason", binding.reason}};
  document["why_not"] = std::move(answers);
  document["sensitivity"] = Json::array();
  for (const planner::PlanSensitivity &entry : *figures)
    document["sensitivity"].push_back(planner::toJson(entry));

  if (!text.empty())
    text += "\n";
  if (planned && planned->document["decisions"] != file.document["decisions"]) {
    text += "the plan decides otherwise than the search does now: see "
            "monarch-plan diff\n\n";
    document["planned"] = {
        {"degrees", planned->document.value("degrees", Json())},
        {"prediction", planned->document.value("prediction", Json())}};
  }
  text += planner::summarize(*result, cluster);
  text += "decided";
  for (const auto &[name, by] : file.document["origins"].items())
    text += fmt::format(" {} ({})", name, by.get<std::string>());
  text += fmt::format("\nbinds   {}: {}\n", binding.what, binding.reason);
  text += "\none figure changed, the plan kept\n" +
          planner::summarize(*figures, *result);
  console.result(text, document);
  return static_cast<int>(ExitCode::Ok);
}

} // namespace

int explain(const ExplainOptions &options, const ModelLoader &loader,
            const Console &console) {
  PlanOptions plan = options.plan;
  const auto file = readIfPlan(options.subject);
  if (!file)
    return console.fail(file.error());
  std::optional<planner::StepLayout> planned;
  std::optional<planner::ModelShape> shape;
  plan.model.model = *file ? options.planModel : options.subject;
  if (!*file && !options.planModel.empty())
    return console.fail(usage("two models", "MODEL",
                              "give a plan and its model, or a model alone"));
  if (*file) {
    const planner::PlanFile &read = **file;
    plan.target = planner::targetOf(read);
    if (plan.fix.empty())
      plan.fix = pinsOf(read);
    if (auto error = takeWorkload(read, options.subject, plan))
      return console.fail(*error);
    if (plan.cluster.empty())
      plan.cluster = clusterNameOf(read);
    if (plan.target != planner::OwnTarget) {
      const auto layout = planner::readLayoutPlan(read);
      if (!layout) {
        Error error = layout.error();
        error.where = options.subject + ", " + error.where;
        return console.fail(error);
      }
      planned = layout->layout;
      shape = layout->shape;
    }
    if (plan.model.model.empty() && !shape)
      return console.fail(
          usage("the plan does not hold its model", "PLAN",
                "write monarch-plan explain PLAN MODEL --cluster C"));
  }
  if (plan.cluster.empty())
    return console.fail(
        usage("no cluster", "--cluster", "give --cluster CLUSTER"));
  if (plan.globalBatch < 1)
    return console.fail(
        usage("no batch", "--global-batch", "give --global-batch ROWS"));
  const auto cluster = loadCluster(plan.cluster);
  if (!cluster)
    return console.fail(cluster.error());
  Model model{shape, std::nullopt};
  if (!plan.model.model.empty()) {
    auto loaded =
        loadPlannerModel({plan.model, plan.sequence, plan.dtype}, loader);
    if (!loaded)
      return console.fail(loaded.error());
    model = std::move(*loaded);
  } else if (plan.sequence) {
    model.shape->sequence = *plan.sequence;
  }
  if (plan.target == planner::OwnTarget)
    return explainOps(options, plan, model, *cluster, *file ? &**file : nullptr,
                      console);
  return explainLayout(options, plan, model, *cluster, planned, console);
}

} // namespace monarch::cli
