//===- LayoutPlan.cpp - plans of targets that others run ------------------===//
#include "planner/LayoutPlan.h"

namespace monarch::planner {

Expected<LayoutPlan> readLayoutPlan(const PlanFile &file) {
  JsonDocument document{file.document, "plan file", "MP2210",
                        ExitCode::BadInput, "plan again with this version"};
  const JsonValue root(document);
  LayoutPlan plan;
  plan.target = root["target"].string();
  plan.layout = readStepLayout(root["layout"]);
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
  const StepLayout &layout = parts.estimate.layout;
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
                                    {"optimizer", "adamw"}};
  document["inputs"]["pins"] = fixedJson(parts.pins);
  document["target"] = plan.target;
  document["degrees"] = {{"dp", layout.dp}, {"tp", layout.tp},
                         {"pp", layout.pp}, {"cp", layout.cp},
                         {"ep", layout.ep}, {"micro_batch", layout.microBatch}};
  document["layout"] = layoutToJson(layout);
  const Json pins = fixedJson(parts.pins);
  for (const char *key : {"dp", "tp", "pp", "cp", "ep", "vpp", "zero",
                          "micro_batch", "recompute", "schedule"})
    document["origins"][key] =
        toString(pins.contains(key) ? Origin::User : Origin::Planner);
  document["prediction"] = toJson(parts.estimate, parts.machine, parts.target);
  for (const char *said : {"target", "layout", "remarks"})
    document["prediction"].erase(said);
  document["alternatives"] = parts.alternatives;
  document["diagnostics"] = parts.estimate.remarks;
  return file;
}

} // namespace monarch::planner
