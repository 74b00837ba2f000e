#include "tools/cli/planner/Commands.h"

#include "tools/cli/Validators.h"

namespace monarch::cli {

namespace {

/// What --format says, before or without parsing: usage errors obey it too.
Format formatOf(int argc, char **argv) {
  std::string_view before;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--format=json" ||
        (before == "--format" && argument == "json"))
      return Format::Json;
    before = argument;
  }
  return Format::Text;
}

int version(const Console &console) {
  Json document;
  document["name"] = "monarch-plan";
  document["version"] = MONARCH_VERSION;
  console.result("monarch-plan " MONARCH_VERSION "\n", document);
  return static_cast<int>(ExitCode::Ok);
}

constexpr const char *OutputHelp =
    "the file to write; - for stdout; nothing when absent";

} // namespace

void addModel(CLI::App &verb, ModelOptions &options, bool required) {
  auto *model = verb.add_option(
      "MODEL", options.model,
      "a .pt2 file, a Hugging Face config.json, or monarch.graph/1 JSON");
  if (required)
    model->required();
  verb.add_option("--loss", options.loss,
                  "OUTPUT, ce:LOGITS,LABELS or causal_lm:LOGITS,LABELS");
  verb.add_option("--shape", options.shapes, "NAME=AxB for open sizes");
  verb.add_option("--mode", options.mode, "train or infer")
      ->check(CLI::IsMember({"train", "infer"}));
  verb.add_option("--rules", options.rules,
                  "how ops of other libraries may be split, as JSON");
}

void PlannerCommands::addPlanFlags(CLI::App &verb, PlanOptions &options) {
  verb.add_option("--seq-len", options.sequence,
                  "tokens of a row, for a config.json")
      ->check(positive());
  verb.add_option("--micro-batch", options.microBatch, "rows of one unit")
      ->check(positive());
  verb.add_option("--fix", options.fix,
                  "pins: dp=2,tp=2,pp=1; for other targets also cp, ep, vpp, "
                  "sp, zero, dp_shard, offload, recompute, schedule, layers");
  verb.add_option("--optimizer", options.optimizer,
                  "adamw or sgd; for other targets also sgd_momentum, "
                  "adamw_8bit")
      ->check(CLI::IsMember({"adamw", "sgd", "sgd_momentum", "adamw_8bit"}));
  verb.add_option("--master-weights", options.masterWeights,
                  "float32: bfloat16 and float16 parameters are updated and "
                  "their gradients summed in float32; none by default")
      ->check(CLI::IsMember({"float32", "none"}));
  verb.add_option("--target", options.target,
                  "what runs the plan: monarch, megatron, torchtitan, "
                  "deepspeed, ...");
  verb.add_option("--dtype", options.dtype,
                  "of a config.json's products: bfloat16, float16, fp8; for "
                  "monarch also float32");
}

void PlannerCommands::addSubject(CLI::App &verb, SubjectOptions &options,
                                 const char *what) {
  verb.add_option("SUBJECT", options.subject, what)->required();
  verb.add_option("MODEL", options.planModel,
                  "the model of a plan that does not hold it");
  verb.add_option("--cluster", options.plan.cluster,
                  "the cluster; by default the plan's, if it is a preset");
  verb.add_option("--global-batch", options.plan.globalBatch,
                  "rows of the batch of one step; by default the plan's")
      ->check(positive());
  addPlanFlags(verb, options.plan);
}

void PlannerCommands::addSimulate(CLI::App &app) {
  SimulateOptions &options = simulateOptions;
  simulateVerb = app.add_subcommand(
      "simulate", "Price a plan on another cluster, or a layout, as it is");
  addSubject(*simulateVerb, options,
             "a plan, or a model with --target and --fix");
  simulateVerb->add_option("--slow-rank", options.slowRanks,
                           "RANK=FACTOR: its compute takes that many times as "
                           "long");
  simulateVerb->add_option("--slow-link", options.slowLinks,
                           "LEVEL=SHARE: what is left of its bandwidth");
  simulateVerb->add_option("--trace", options.trace,
                           "write the schedule for chrome://tracing or "
                           "Perfetto");
}

void PlannerCommands::addExplain(CLI::App &app) {
  ExplainOptions &options = explainOptions;
  explainVerb = app.add_subcommand(
      "explain", "Why this plan, why not another, what binds, what if");
  addSubject(*explainVerb, options,
             "a plan, or a config.json, monarch.graph/1 JSON or model "
             "file that is planned first");
  explainVerb->add_option("--why-not", options.whyNot,
                          "pins of a layout that you have in mind, as "
                          "tp=4,pp=2; may be given several times");
}

void PlannerCommands::addDiff(CLI::App &app) {
  diffVerb = app.add_subcommand(
      "diff", "What another plan decides and costs; exit code 1: they differ");
  diffVerb->add_option("OLD", diffOptions.before, "a plan file")->required();
  diffVerb->add_option("NEW", diffOptions.after, "a plan file")->required();
  diffVerb->add_option("--tolerance", diffOptions.tolerance,
                       "figures that move by this share at most are no "
                       "difference, as 1%");
}

void PlannerCommands::addCluster(CLI::App &app) {
  CLI::App *cluster =
      app.add_subcommand("cluster", "Machines: known ones and your own");
  cluster->require_subcommand(1);
  listVerb = cluster->add_subcommand("list", "Known instance types and cards");
  showVerb = cluster->add_subcommand("show", "What a cluster is made of");
  validateVerb = cluster->add_subcommand("validate", "Check a cluster file");
  for (CLI::App *verb : {showVerb, validateVerb})
    verb->add_option("CLUSTER", clusterOptions.subject,
                     "a name or a monarch.cluster/1 file")
        ->required();
  importVerb = cluster->add_subcommand(
      "import", "A cluster file from what a machine says of itself");
  importVerb
      ->add_option("SOURCE", clusterOptions.format,
                   "nccl-xml (NCCL_TOPO_DUMP_FILE), nvidia-smi (topo -m), "
                   "slurm (topology.conf), k8s (kubectl get nodes -o json)")
      ->required()
      ->check(CLI::IsMember({"nccl-xml", "nvidia-smi", "slurm", "k8s"}));
  importVerb->add_option("FILE", clusterOptions.subject, "the text")
      ->required();
  importVerb->add_option("--device", clusterOptions.device,
                         "of a topology that does not name it");
  importVerb->add_option("--node", clusterOptions.node,
                         "slurm: the preset of one node");
  detectVerb = cluster->add_subcommand("detect", "A cluster file of this host");
  calibrateVerb = cluster->add_subcommand(
      "calibrate", "Factors on the rates from one to three timed steps");
  calibrateVerb
      ->add_option("CLUSTER", clusterOptions.subject,
                   "a name or a monarch.cluster/1 file")
      ->required();
  calibrateVerb
      ->add_option("--measured", clusterOptions.measured,
                   "PLAN=SECONDS of a step; one to three times")
      ->required()
      ->expected(1, 3);
  for (CLI::App *verb : {showVerb, importVerb, detectVerb, calibrateVerb})
    verb->add_option("-o,--output", clusterOptions.output, OutputHelp);
}

PlannerCommands::PlannerCommands(CLI::App &app) {
  planVerb = app.add_subcommand("plan", "Choose the split for a cluster");
  addModel(*planVerb, planOptions.model);
  planVerb
      ->add_option("--cluster", planOptions.cluster,
                   "a file, cpu:N, an instance type as 2xp5.48xlarge, or "
                   "[NODESx]PER_NODExDEVICE")
      ->required();
  planVerb
      ->add_option("--global-batch", planOptions.globalBatch,
                   "rows of the batch of one step; --mode infer: sequences "
                   "that a replica works on together")
      ->required()
      ->check(positive());
  addPlanFlags(*planVerb, planOptions);
  planVerb
      ->add_option("--limit", planOptions.limit,
                   "candidates to look at; then the best so far, or exit code "
                   "7")
      ->check(positive());
  ServingOptions &serving = planOptions.serving;
  planVerb->add_option("--kv-dtype", serving.keyValueType,
                       "--mode infer: of keys and values at rest: bfloat16, "
                       "float16, float32, fp8");
  planVerb
      ->add_option("--max-length", serving.maxLength,
                   "--mode infer: tokens of prompt and answer together")
      ->check(positive());
  planVerb
      ->add_option("--memory-share", serving.memoryShare,
                   "--mode infer: of a card, that the server takes by design")
      ->check(CLI::Range(0.05, 1.0));
  planVerb->add_option("-o,--output", planOptions.output, OutputHelp);
  addExplain(app);
  addDiff(app);
  addSimulate(app);
  addCluster(app);
  versionVerb = app.add_subcommand("version", "Show the version");
}

std::optional<int> PlannerCommands::run(const ModelLoader &loader,
                                        const Console &console) {
  if (*planVerb)
    return plan(planOptions, loader, console);
  if (*explainVerb)
    return explain(explainOptions, loader, console);
  if (*diffVerb)
    return diff(diffOptions, console);
  if (*simulateVerb)
    return simulate(simulateOptions, loader, console);
  if (*listVerb)
    return clusterList(console);
  if (*showVerb)
    return clusterShow(clusterOptions, console);
  if (*validateVerb)
    return clusterValidate(clusterOptions, console);
  if (*importVerb)
    return clusterImport(clusterOptions, console);
  if (*detectVerb)
    return clusterDetect(clusterOptions, console);
  if (*calibrateVerb)
    return clusterCalibrate(clusterOptions, console);
  if (*versionVerb)
    return version(console);
  return std::nullopt;
}

std::optional<int> parse(CLI::App &app, int argc, char **argv,
                         Console &console) {
  console.format = formatOf(argc, argv);
  app.add_option("--format", console.format, "text or json")
      ->transform(CLI::CheckedTransformer(std::map<std::string, Format>{
          {"text", Format::Text}, {"json", Format::Json}}));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    // Help is a result.
    if (error.get_exit_code() == 0)
      return app.exit(error);
    return console.fail({"MP1800", ExitCode::Usage, error.what(),
                         "command line", "see monarch-plan VERB --help"});
  }
  return std::nullopt;
}

} // namespace monarch::cli
