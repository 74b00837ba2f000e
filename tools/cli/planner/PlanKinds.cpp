// plan: serving, several kinds of devices, embedding tables.
#include "tools/cli/planner/PlanKinds.h"

#include "core/support/Files.h"
#include "planner/choose/Inference.h"
#include "planner/choose/MixedDevices.h"
#include "planner/choose/TableList.h"
#include "planner/cluster/KnownMachines.h"
#include "tools/cli/planner/Inputs.h"
#include "tools/cli/planner/LayoutVerbs.h"

#include <fmt/format.h>
#include <fstream>

namespace monarch::cli {

namespace {

Error refused(std::string what, std::string where, std::string fix) {
  return {"MP3320", ExitCode::Infeasible, std::move(what), std::move(where),
          std::move(fix)};
}

std::vector<planner::Machine> machinesOf(const planner::ClusterParts &cluster) {
  std::vector<planner::Machine> machines;
  for (const planner::Cluster &part : cluster.parts) {
    machines.push_back(planner::machineOf(part));
    if (cluster.isOneBox)
      machines.back().devicesPerNode = cluster.deviceCount();
  }
  return machines;
}

Json documentOf(const char *schema, const planner::ClusterParts &cluster) {
  Json document;
  document["schema"] = schema;
  document["cluster"] = {{"name", cluster.parts.front().name},
                         {"devices", cluster.deviceCount()}};
  return document;
}

int finishWith(Json document, const Json &figures, const std::string &text,
               const std::string &output, const Console &console) {
  for (const auto &[key, value] : figures.items())
    document[key] = value;
  return finish(text, writeJson(document), document, output, console);
}

Expected<double> bytesOf(const std::string &type, const char *flag) {
  if (type == "fp8")
    return 1.0;
  const auto known = parseDType(type);
  if (known && isFloating(*known))
    return static_cast<double>(byteWidth(*known));
  return Error{"MP1811", ExitCode::Usage,
               "'" + type + "' is no type of numbers", flag,
               "write bfloat16, float16, float32 or fp8"};
}

Expected<planner::InferenceRequest> servingRequestOf(const PlanOptions &options,
                                                     double sequence) {
  if (options.target != planner::OwnTarget)
    return Error{"MP1818", ExitCode::Usage,
                 "infer is not priced for " + options.target, "--mode",
                 "leave out --target: serving has kernels of its own"};
  if (options.microBatch)
    return Error{"MP1818", ExitCode::Usage, "serving has no micro-batch",
                 "--micro-batch", "leave it out"};
  planner::InferenceRequest request;
  request.concurrency = options.globalBatch;
  request.length = static_cast<double>(options.serving.maxLength.value_or(0));
  if (request.length < sequence) {
    if (options.serving.maxLength)
      return refused(fmt::format("--max-length {} is less than the prompt of "
                                 "{:g} tokens",
                                 *options.serving.maxLength, sequence),
                     "--max-length", "prompt and answer together");
    request.length = sequence;
  }
  request.headroom = 1 - options.serving.memoryShare;
  const std::string type = options.dtype.empty() ? "bfloat16" : options.dtype;
  const auto weights = bytesOf(type, "--dtype");
  if (!weights)
    return weights.error();
  request.weightBytes = *weights;
  const auto keys = bytesOf(options.serving.keyValueType.empty()
                                ? (type == "fp8" ? "bfloat16" : type)
                                : options.serving.keyValueType,
                            "--kv-dtype");
  if (!keys)
    return keys.error();
  request.keyValueBytes = *keys;
  if (!options.fix.empty()) {
    auto pins = planner::readLayoutPins(options.fix);
    if (!pins)
      return pins.error();
    for (const auto &[name, value] : pins->entries())
      if (name != "tp" && name != "pp")
        return refused(name + " is no degree of serving", "--fix",
                       "legal: tp, pp; replicas take the rest");
    request.pins = *pins;
  }
  return request;
}

/// Counts of devices beside one that nothing divides: what they would do.
std::vector<int64_t> countsBeside(int64_t devices) {
  const bool isPower = (devices & (devices - 1)) == 0;
  if (isPower)
    return {};
  int64_t below = 1;
  while (below * 2 < devices)
    below *= 2;
  return {below, below * 2};
}

} // namespace

int planServing(const PlanOptions &options, const Model &model,
                const planner::ClusterParts &cluster, const Console &console) {
  const planner::Target target = planner::servingTarget();
  const auto work = workOf(model, target.style);
  if (!work)
    return console.fail(work.error());
  auto request = servingRequestOf(options, work->sequence);
  if (!request)
    return console.fail(request.error());
  const std::vector<planner::Machine> machines = machinesOf(cluster);
  Json document = documentOf("monarch.serving/1", cluster);
  if (machines.size() > 1) {
    if (request->pins.tp || request->pins.pp)
      return console.fail(refused("every device of several kinds is a stage",
                                  "--fix", "leave out tp and pp"));
    const auto choice = planner::serveMixed(*work, machines, target, *request);
    if (!choice)
      return console.fail(choice.error());
    return finishWith(std::move(document), toJson(*choice, machines),
                      summarize(*choice, machines), options.output, console);
  }
  const auto choice =
      planner::chooseInference(*work, machines.front(), target, *request);
  if (!choice)
    return console.fail(choice.error());
  std::string text = summarize(*choice, machines.front(), *request);
  Json figures = toJson(*choice, machines.front(), *request);
  figures["beside"] = Json::array();
  for (int64_t devices : countsBeside(machines.front().devices)) {
    planner::Machine other = machines.front();
    other.devices = devices;
    const auto beside =
        planner::chooseInference(*work, other, target, *request);
    Json entry = {{"devices", devices}, {"fits", bool(beside)}};
    if (beside) {
      entry["degrees"] = toJson(*beside, other, *request)["degrees"];
      entry["token_seconds"] = rounded(beside->tokenSeconds);
    }
    text += beside ? fmt::format("on {}      tp {} x pp {} x {} replicas, a "
                                 "token each {:.3g} ms\n",
                                 devices, beside->tp, beside->pp,
                                 beside->replicas, 1e3 * beside->tokenSeconds)
                   : fmt::format("on {}      does not fit\n", devices);
    figures["beside"].push_back(std::move(entry));
  }
  return finishWith(std::move(document), figures, text, options.output,
                    console);
}

int planMixed(const PlanOptions &options, const Model &model,
              const planner::ClusterParts &cluster, const Console &console) {
  if (options.target == planner::OwnTarget)
    return console.fail({"MP3324", ExitCode::Unsupported,
                         "nodes of several kinds: monarch runs one program on "
                         "equal devices",
                         options.cluster,
                         "give --target deepspeed or megatron for a pipeline "
                         "over all of them, or plan each kind by itself"});
  const std::vector<planner::Machine> machines = machinesOf(cluster);
  const auto question = layoutQuestion(options, model, cluster.parts.front());
  if (!question)
    return console.fail(question.error());
  planner::LayoutRequest request;
  request.globalBatch = options.globalBatch;
  request.pins = question->pins;
  request.precision = question->precision;
  const auto comparison = planner::compareMixed(question->work, machines,
                                                question->target, request);
  if (!comparison)
    return console.fail(comparison.error());
  Json document = documentOf("monarch.mixed/1", cluster);
  document["target"] = options.target;
  return finishWith(std::move(document), toJson(*comparison, machines),
                    summarize(*comparison, machines), options.output, console);
}

std::optional<int> planTablesIfAny(const PlanOptions &options,
                                   const planner::ClusterParts &cluster,
                                   const Console &console) {
  const std::string &path = options.model.model;
  constexpr size_t Beginning = 200;
  std::string head(Beginning, '\0');
  std::ifstream stream(path, std::ios::binary);
  stream.read(head.data(), static_cast<std::streamsize>(head.size()));
  if (!planner::looksLikeTables(head))
    return std::nullopt;
  const auto text = readFile(path);
  if (!text)
    return console.fail(text.error());
  const auto list = planner::readTables(*text, path);
  if (!list)
    return console.fail(list.error());
  const std::vector<planner::Machine> machines = machinesOf(cluster);
  if (machines.size() > 1)
    return console.fail(refused("tables are placed on equal devices",
                                options.cluster, "plan one kind of device"));
  auto target = planner::findTarget(
      options.target == planner::OwnTarget ? "torchtitan" : options.target);
  if (!target)
    return console.fail(target.error());
  planner::TableRequest request;
  request.globalBatch = options.globalBatch;
  request.denseBytes = list->denseBytes;
  const auto plan =
      planner::placeTables(list->tables, machines.front(), *target, request);
  if (!plan)
    return console.fail(plan.error());
  return finishWith(documentOf("monarch.placement/1", cluster),
                    toJson(*plan, list->tables, machines.front(), request),
                    summarize(*plan, list->tables, machines.front(), request),
                    options.output, console);
}

} // namespace monarch::cli
