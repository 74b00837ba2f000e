//===- LayoutPlan.cpp - plans of targets that others run ------------------===//
#include "planner/LayoutPlan.h"

#include "planner/step/Optimizer.h"

namespace monarch::planner {

Expected<LayoutPlan> readLayoutPlan(const PlanFile &file) {
  JsonDocument document{file.document, "plan file", "MP2210",
                        ExitCode::BadInput, "plan again with this version"};
  const JsonValue root(document);
  LayoutPlan plan;
  plan.target = root["target"].string();
  plan.layout = readStepLayout(root["layout"]);
  const JsonValue optimizer = root["inputs"]["workload"]["optimizer"];
  plan.optimizer = optimizer.string();
  if (!parseOptimizer(plan.optimizer))
    optimizer.fail("is no optimizer");
  const JsonValue inputs = root["inputs"];
  plan.graphDigest = inputs["graph"]["digest"].string();
  plan.clusterName = inputs["cluster"]["name"].string();
  plan.clusterDigest = inputs["cluster"]["digest"].string();
  if (const auto model = inputs.find("model"))
    plan.shape = readShape(*model);
  if (document.error)
    return *document.error;
  return plan;
}

PlanFile planFileOf(const LayoutPlanParts &parts) {
  const LayoutPlan &plan = parts.plan;
  const LayoutChoice &choice = parts.choice;
  const StepLayout &layout = choice.best.layout;
  PlanFile file;
  Json &document = file.document;
  document["schema"] = "monarch.plan/1";
  document["inputs"]["graph"] = {{"digest", plan.graphDigest}};
  if (plan.shape)
    document["inputs"]["model"] = shapeToJson(*plan.shape);
  document["inputs"]["cluster"] = {{"name", parts.cluster.name},
                                   {"devices", parts.cluster.deviceCount()},
                                   {"digest", digest(parts.cluster)}};
  document["inputs"]["workload"] = {{"global_batch", layout.globalBatch},
                                    {"mode", "train"},
                                    {"optimizer", plan.optimizer}};
  document["inputs"]["pins"] = Json::object();
  for (const auto &[name, value] : parts.pins.entries())
    document["inputs"]["pins"][name] = value;
  document["target"] = plan.target;
  document["degrees"] = {{"dp", layout.dp}, {"tp", layout.tp},
                         {"pp", layout.pp}, {"cp", layout.cp},
                         {"ep", layout.ep}, {"micro_batch", layout.microBatch}};
  document["layout"] = layoutToJson(layout);
  Json said = toJson(choice, parts.machine, parts.target);
  document["origins"] = Json::object();
  for (const Json &decision : said["decisions"])
    document["origins"][decision["name"].get<std::string>()] = decision["by"];
  document["prediction"] = toJson(choice.best, parts.machine, parts.target);
  for (const char *elsewhere : {"target", "layout", "remarks"})
    document["prediction"].erase(elsewhere);
  document["search"] = {{"complete", choice.isComplete},
                        {"counts", said["counts"]},
                        {"bound_seconds", said["bound_seconds"]},
                        {"gap", said["gap"]}};
  document["alternatives"] = Json::array();
  for (const LayoutFamily &family : choice.alternatives)
    document["alternatives"].push_back(
        {{"layout", layoutToJson(family.best.layout)},
         {"step_seconds", rounded(family.best.time.seconds)},
         {"rejected", family.reason}});
  document["diagnostics"] = choice.best.remarks;
  return file;
}

} // namespace monarch::planner
