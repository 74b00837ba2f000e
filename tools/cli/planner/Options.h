//===- Options.h - what the planner's verbs are asked ---------------------===//
//
// Options as the command line gives them; what they mean is DESIGN §8. Each
// verb returns an exit code and leaves nothing half written.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/graph/Graph.h"
#include "tools/cli/Console.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace monarch::cli {

struct ModelOptions {
  std::string model;
  std::string loss;
  /// "name=AxB", for sizes that the file leaves open.
  std::vector<std::string> shapes;
  std::string mode = "train";
  /// monarch.rules/1 for ops of other libraries; "": none.
  std::string rules;
};

/// Reads a model file that is neither a config.json nor a graph.
using ModelLoader = std::function<Expected<Graph>(const ModelOptions &)>;

/// Of --mode infer with a config.json.
struct ServingOptions {
  /// "": as the weights.
  std::string keyValueType;
  /// Tokens of a sequence when its last one comes; nullopt: the prompt's.
  std::optional<int64_t> maxLength;
  /// Of the card, that the server takes by design.
  double memoryShare = 0.9;
};

struct PlanOptions {
  ModelOptions model;
  /// Of a config.json, which has no sequence of its own.
  std::optional<int64_t> sequence;
  std::string cluster;
  int64_t globalBatch = 0;
  std::optional<int64_t> microBatch;
  /// "dp=2,tp=2": pins.
  std::string fix;
  std::string optimizer = "adamw";
  /// "float32" or "none"; "": not said.
  std::string masterWeights;
  std::string target = "monarch";
  std::string dtype;
  /// Candidates to look at.
  std::optional<int64_t> limit;
  ServingOptions serving;
  /// "": nothing is written; "-": stdout.
  std::string output;
};
int plan(const PlanOptions &options, const ModelLoader &loader,
         const Console &console);

struct SubjectOptions {
  /// A plan file, or a model that is planned first.
  std::string subject;
  /// The model of a plan that was made from a graph.
  std::string planModel;
  PlanOptions plan;
};

struct SimulateOptions : SubjectOptions {
  /// "R=1.3": rank R takes that many times as long.
  std::vector<std::string> slowRanks;
  /// "LEVEL=0.5": what is left of that level's bandwidth.
  std::vector<std::string> slowLinks;
  std::string trace;
};
int simulate(const SimulateOptions &options, const ModelLoader &loader,
             const Console &console);

struct ExplainOptions : SubjectOptions {
  /// "tp=4,pp=2": pins, each a question.
  std::vector<std::string> whyNot;
};
int explain(const ExplainOptions &options, const ModelLoader &loader,
            const Console &console);

struct DiffOptions {
  /// Plan files.
  std::string before, after;
  std::string tolerance = "0%";
};
/// Exit code 1 where they differ.
int diff(const DiffOptions &options, const Console &console);

struct ClusterOptions {
  /// What to show, validate, import or calibrate.
  std::string subject;
  std::string output;
  /// import: nccl-xml, nvidia-smi, slurm, k8s.
  std::string format;
  /// import: device of a topology that does not name it.
  std::string device;
  /// import: the node of a topology that names only hosts.
  std::string node;
  /// calibrate: "PLAN=SECONDS".
  std::vector<std::string> measured;
};
int clusterList(const Console &console);
int clusterShow(const ClusterOptions &options, const Console &console);
int clusterValidate(const ClusterOptions &options, const Console &console);
int clusterImport(const ClusterOptions &options, const Console &console);
int clusterDetect(const ClusterOptions &options, const Console &console);
int clusterCalibrate(const ClusterOptions &options, const Console &console);

} // namespace monarch::cli
