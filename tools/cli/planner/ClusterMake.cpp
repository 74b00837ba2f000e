// cluster: import, detect and calibrate, which make cluster files.
#include "core/support/Files.h"
#include "planner/LayoutPlan.h"
#include "planner/cluster/Calibrate.h"
#include "planner/cluster/KnownMachines.h"
#include "planner/cluster/ShowCluster.h"
#include "planner/cluster/import/Import.h"
#include "tools/cli/planner/Inputs.h"

#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <unistd.h>

namespace monarch::cli {

namespace {

/// Checks a made document as any file is, and says it.
int finishDocument(const Json &document, const std::string &note,
                   const ClusterOptions &options, const Console &console) {
  const std::string file = writeJson(document);
  const auto cluster = planner::readCluster(file);
  if (!cluster)
    return console.fail(cluster.error());
  if (!note.empty())
    console.note(note);
  return finish(planner::showCluster(*cluster), file, document, options.output,
                console);
}

bool isOnPath(const char *program) {
  const char *path = std::getenv("PATH");
  std::string_view rest = path ? path : "";
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(':'), rest.size());
    const std::string candidate =
        std::string(rest.substr(0, end)) + "/" + program;
    if (::access(candidate.c_str(), X_OK) == 0)
      return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

/// What a command prints; nullopt when it fails or prints without end.
std::optional<std::string> outputOf(const char *command) {
  std::FILE *pipe = ::popen(command, "r");
  if (!pipe)
    return std::nullopt;
  constexpr size_t Most = 1 << 20;
  std::string text;
  std::array<char, 4096> buffer;
  while (const size_t count =
             std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    if (text.size() < Most)
      text.append(buffer.data(), count);
  }
  const int status = ::pclose(pipe);
  if (status != 0 || text.size() >= Most)
    return std::nullopt;
  return text;
}

Expected<Json> importText(const ClusterOptions &options,
                          const std::string &text) {
  if (options.format == "nccl-xml")
    return planner::importNcclTopology(text, options.device);
  if (options.format == "nvidia-smi")
    return planner::importTopologyMatrix(text, options.device);
  if (options.format == "slurm")
    return planner::importSlurmTopology(text, options.node);
  return planner::importKubernetesNodes(text);
}

/// "plan.json=7.4".
Expected<planner::MeasuredStep> readMeasured(const std::string &text) {
  const size_t equals = text.rfind('=');
  double seconds = 0;
  if (equals != std::string::npos) {
    const char *begin = text.data() + equals + 1,
               *end = text.data() + text.size();
    const auto [rest, failure] = std::from_chars(begin, end, seconds);
    if (failure != std::errc() || rest != end)
      seconds = 0;
  }
  constexpr double Least = 1e-6, Most = 1e6;
  if (!(seconds >= Least) || !(seconds <= Most))
    return Error{"MP1813", ExitCode::Usage,
                 "'" + text + "' is no measured step", "--measured",
                 "write PLAN=SECONDS, as layout.plan.json=7.41"};
  const std::string path = text.substr(0, equals);
  auto located = [&](Error error) {
    error.where = path + (error.where.empty() ? "" : ", " + error.where);
    return error;
  };
  const auto content = readFile(path);
  if (!content)
    return content.error();
  const auto file = planner::readPlan(*content);
  if (!file)
    return located(file.error());
  if (planner::targetOf(*file) == planner::OwnTarget)
    return Error{"MP3321", ExitCode::Unsupported,
                 "plans of the target monarch do not calibrate", path,
                 "give a plan of a config.json for the target that was timed, "
                 "as --target megatron"};
  const auto plan = planner::readLayoutPlan(*file);
  if (!plan)
    return located(plan.error());
  if (!plan->shape)
    return Error{"MP1814", ExitCode::BadInput,
                 "the plan does not hold its model", path,
                 "plan from a config.json"};
  const auto target = planner::findTarget(plan->target);
  if (!target)
    return located(target.error());
  auto work = planner::workOf(*plan->shape, target->style);
  if (!work)
    return located(work.error());
  return planner::MeasuredStep{std::move(*work), *target, plan->layout,
                               seconds};
}

/// The user's own document, or one that extends a preset.
Expected<Json> ownDocument(const std::string &name) {
  if (planner::looksLikePreset(name)) {
    Json document;
    document["schema"] = "monarch.cluster/1";
    document["extends"] = name;
    return document;
  }
  const auto text = readFile(name);
  if (!text)
    return text.error();
  return Json::parse(*text, nullptr, false, /*ignore_comments=*/true);
}

} // namespace

int clusterImport(const ClusterOptions &options, const Console &console) {
  const auto text = readFile(options.subject);
  if (!text)
    return console.fail(text.error());
  auto document = importText(options, *text);
  if (!document) {
    Error error = document.error();
    error.where =
        options.subject + (error.where.empty() ? "" : ", " + error.where);
    return console.fail(error);
  }
  return finishDocument(*document, "", options, console);
}

int clusterDetect(const ClusterOptions &options, const Console &console) {
  if (isOnPath("nvidia-smi")) {
    const auto csv = outputOf(
        "nvidia-smi --query-gpu=name,memory.total,memory.used,mig.mode.current "
        "--format=csv,noheader,nounits 2>/dev/null");
    if (!csv)
      return console.fail({"MP1109", ExitCode::BadInput,
                           "nvidia-smi fails: the driver does not answer",
                           "nvidia-smi",
                           "repair the driver, or write cpu:N for local "
                           "ranks"});
    const auto matrix = outputOf("nvidia-smi topo -m 2>/dev/null");
    const auto document = planner::importSmiQuery(*csv, matrix.value_or(""));
    if (!document)
      return console.fail(document.error());
    return finishDocument(*document, "", options, console);
  }
  const auto cpu = readFile("/proc/cpuinfo");
  const auto memory = readFile("/proc/meminfo");
  if (!cpu || !memory)
    return console.fail(cpu ? memory.error() : cpu.error());
  const auto document = planner::importHost(*cpu, *memory);
  if (!document)
    return console.fail(document.error());
  return finishDocument(
      *document,
      "note: no GPU here (no nvidia-smi on PATH); local ranks on "
      "the processors",
      options, console);
}

int clusterCalibrate(const ClusterOptions &options, const Console &console) {
  const auto cluster = loadCluster(options.subject);
  if (!cluster)
    return console.fail(cluster.error());
  std::vector<planner::MeasuredStep> steps;
  for (const std::string &text : options.measured) {
    auto step = readMeasured(text);
    if (!step)
      return console.fail(step.error());
    const auto legal = planner::estimate(
        step->work, planner::machineOf(*cluster), step->target, step->layout);
    if (!legal) {
      Error error = legal.error();
      error.where = text + " on " + options.subject;
      return console.fail(error);
    }
    steps.push_back(std::move(*step));
  }
  auto document = ownDocument(options.subject);
  if (!document)
    return console.fail(document.error());
  const planner::CalibrationFit fit = planner::calibrate(*cluster, steps);
  Json &own = (*document)["calibration"];
  own = {{"compute", rounded(fit.factors.compute)},
         {"links", rounded(fit.factors.links)},
         {"network", rounded(fit.factors.network)},
         {"steps", Json::array()}};
  std::string note;
  for (size_t i = 0; i < steps.size(); ++i) {
    own["steps"].push_back({{"target", steps[i].target.name},
                            {"layout", planner::layoutToJson(steps[i].layout)},
                            {"measured_seconds", steps[i].seconds},
                            {"predicted_seconds", rounded(fit.before[i])},
                            {"calibrated_seconds", rounded(fit.after[i])}});
    note += fmt::format("{}step {}: measured {:.4g} s, predicted {:.4g} s, "
                        "calibrated {:.4g} s",
                        i == 0 ? "" : "\n", i + 1, steps[i].seconds,
                        fit.before[i], fit.after[i]);
  }
  (*document)["provenance"]["calibration"] =
      fmt::format("fitted to {} measured step{}", steps.size(),
                  steps.size() == 1 ? "" : "s");
  return finishDocument(*document, note, options, console);
}

} // namespace monarch::cli
