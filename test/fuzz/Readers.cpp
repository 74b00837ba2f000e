//===- Readers.cpp - bytes in, a typed error or a right use out -----------===//
//
// See Readers.h. Kinds that carry checksums (archives, programs) get right ones
// here, or no mutation would pass them: `archive` tests the archive itself.
//
//===----------------------------------------------------------------------===//
#include "test/fuzz/Readers.h"

#include "compiler/import/ReadProgram.h"
#include "core/program/ProgramFormat.h"
#include "core/program/Verify.h"
#include "core/support/Files.h"
#include "core/support/Safetensors.h"
#include "core/support/Sha256.h"
#include "planner/cluster/Cluster.h"
#include "planner/plan/PlanFile.h"
#include "test/fuzz/MemoryPeak.h"
#include "test/fuzz/TextReaders.h"
#include "test/support/TemporaryFolder.h"
#include "test/support/ZipBytes.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace monarch::test {

namespace {

void demand(bool holds, std::string_view promise) {
  if (holds)
    return;
  std::fprintf(stderr, "broken promise: %.*s\n",
               static_cast<int>(promise.size()), promise.data());
  std::abort();
}

/// A file of these bytes, there as long as the next one is not made.
std::string fileOf(std::string_view bytes) {
  static TemporaryFolder folder;
  std::string path = folder / "file";
  demand(!writeFile(path, bytes), "the folder can be written");
  return path;
}

std::optional<Error> readJson(std::string_view bytes) {
  auto json = parseJson(bytes, "file");
  if (!json)
    return json.error();
  std::string text = writeJson(*json);
  auto again = parseJson(text, "file");
  demand(again && writeJson(*again) == text, "JSON is written as it is read");
  return std::nullopt;
}

std::optional<Error> readExpression(std::string_view bytes) {
  auto expression = parseExpr(bytes);
  if (!expression)
    return Error{"MP2101", ExitCode::BadInput, "no expression", "", ""};
  demand(jsonOfExpr(*expression) == bytes,
         "an expression is written as it is read");
  return std::nullopt;
}

std::optional<Error> readArchive(std::string_view bytes) {
  auto archive = ZipArchive::open(fileOf(bytes));
  if (!archive)
    return archive.error();
  std::optional<Error> first;
  for (const auto &[name, record] : archive->records()) {
    auto whole = archive->read(name, /*limitBytes=*/1 << 20);
    if (!whole && !first)
      first = whole.error();
    if (!whole)
      continue;
    demand(whole->size() == record.size, "a record is as long as it says");
    if (record.size == 0)
      continue;
    std::byte last;
    demand(!archive->readAt(name, record.size - 1, {&last, 1}) &&
               static_cast<char>(last) == whole->back(),
           "a part of a record is that of the whole");
    demand(archive->readAt(name, record.size, {&last, 1}).has_value(),
           "nothing is read behind a record");
  }
  return first;
}

std::optional<Error> readSafetensors(std::string_view bytes) {
  auto file = SafetensorsFile::open(fileOf(bytes));
  if (!file)
    return file.error();
  int64_t size = static_cast<int64_t>(bytes.size());
  for (const SafetensorsTensor &tensor : file->tensors()) {
    demand(tensor.offsetBytes >= 0 && tensor.bytes >= 0 &&
               tensor.offsetBytes <= size - tensor.bytes,
           "tensors lie inside their file");
    std::string data(static_cast<size_t>(tensor.bytes), '\0');
    if (auto error = file->read(tensor, 0, tensor.bytes, data.data()))
      return error;
    demand(file->find(tensor.name) == &tensor, "a tensor is found by its name");
  }
  return std::nullopt;
}

std::optional<Error> readClusterFile(std::string_view bytes) {
  auto cluster = planner::readCluster(bytes);
  if (!cluster)
    return cluster.error();
  std::string text = planner::writeCluster(*cluster);
  auto again = planner::readCluster(text);
  demand(again && planner::writeCluster(*again) == text,
         "a cluster is written as it is read");
  return std::nullopt;
}

std::optional<Error> readGraphFile(std::string_view bytes) {
  auto graph = readGraph(bytes);
  if (!graph)
    return graph.error();
  if (auto error = verify(*graph))
    return error;
  std::string text = writeGraph(*graph);
  auto again = readGraph(text);
  demand(again && writeGraph(*again) == text,
         "a graph is written as it is read");
  return std::nullopt;
}

/// Of the model whose plans the corpus holds.
const StrategySpace &plannedSpace() {
  static const Expected<Graph> graph = [] {
    auto text = readFile(MONARCH_CORPUS "/graph/mlp.json");
    demand(static_cast<bool>(text), "the corpus is there");
    return readGraph(*text);
  }();
  demand(static_cast<bool>(graph), "the model of the plans is right");
  static const StrategySpace space(*graph);
  return space;
}

std::optional<Error> readPlanFile(std::string_view bytes) {
  auto plan = planner::readPlan(bytes);
  if (!plan)
    return plan.error();
  std::string text = planner::writePlan(*plan);
  auto again = planner::readPlan(text);
  demand(again && planner::writePlan(*again) == text,
         "a plan is written as it is read");
  if (auto stale = planner::checkInputs(*plan, "graph", "cluster");
      stale && stale->code != ExitCode::Stale)
    return stale;
  auto decisions = planner::expandDecisions(*plan, plannedSpace());
  if (!decisions)
    return decisions.error();
  std::vector<Error> violations = planner::check(*decisions, plannedSpace());
  return violations.empty() ? std::nullopt
                            : std::optional<Error>(violations.front());
}

/// `{"manifest": M, "roles": [R, ...]}`: the files of a program, whose digests
/// are made right.
std::optional<Error> readProgramFiles(std::string_view bytes) {
  static TemporaryFolder folder;
  auto json = parseJson(bytes, "file");
  if (!json || !json->is_object() || !json->contains("manifest") ||
      !json->contains("roles") || !(*json)["roles"].is_array())
    return Error{"MP2101", ExitCode::BadInput, "no program", "file", ""};
  Json &manifest = (*json)["manifest"];
  size_t stage = 0;
  for (const Json &role : (*json)["roles"]) {
    std::string text = writeJson(role);
    std::string name = roleFile(stage);
    demand(!writeFile(folder / name, text), "the folder can be written");
    if (manifest.is_object() && manifest.contains("roles") &&
        manifest["roles"].is_array() && stage < manifest["roles"].size() &&
        manifest["roles"][stage].is_object()) {
      manifest["roles"][stage]["sha256"] = sha256(text);
      manifest["roles"][stage]["bytes"] = text.size();
    }
    ++stage;
  }
  demand(!writeFile(folder / std::string(ManifestFile), writeJson(manifest)),
         "the folder can be written");
  auto program = readProgram(folder / "");
  if (!program)
    return program.error();
  std::vector<Error> violations = verify(*program);
  return violations.empty() ? std::nullopt
                            : std::optional<Error>(joined(violations));
}

/// The bytes are the program of an archive that is right otherwise.
std::optional<Error> readModel(std::string_view bytes) {
  std::string file = zip({{"m/archive_format", "pt2"},
                          {"m/archive_version", "0"},
                          {"m/models/model.json", std::string(bytes)}});
  auto model = openModel(fileOf(file));
  if (!model)
    return model.error();
  FileFacts facts;
  auto program = readProgram(*model, &facts);
  return program ? std::nullopt : std::optional<Error>(program.error());
}

/// A file of any kind where a model is asked for.
std::optional<Error> recognise(std::string_view bytes) {
  auto model = openModel(fileOf(bytes));
  if (!model)
    return model.error();
  // LibTorch's to read.
  if (model->isScript)
    return std::nullopt;
  auto program = readProgram(*model);
  return program ? std::nullopt : std::optional<Error>(program.error());
}

constexpr Reader All[] = {
    {"archive", readArchive},
    {"cluster", readClusterFile},
    {"config", readConfig},
    {"expression", readExpression},
    {"graph", readGraphFile},
    {"json", readJson},
    {"kubernetes-nodes", readKubernetesNodes},
    {"layout-plan", readLayoutOfPlan},
    {"model", readModel},
    {"model-file", recognise},
    {"plan", readPlanFile},
    {"program", readProgramFiles},
    {"rules", readRules},
    {"safetensors", readSafetensors},
    {"size-expression", readSizeExpression},
    {"slurm-topology", readSlurmTopology},
    {"smi-query", readSmiQuery},
    {"topology-matrix", readTopologyMatrix},
    {"topology-xml", readTopologyXml},
};

/// Parsed JSON takes some tens of bytes for a byte of text, tables as much
/// again; the constant is what small files need.
size_t boundBytes(size_t fileBytes) { return (4 << 20) + 400 * fileBytes; }

} // namespace

std::span<const Reader> readers() { return All; }

const Reader &readerNamed(std::string_view name) {
  auto found = std::ranges::find(All, name, &Reader::name);
  demand(found != std::end(All), "the reader is known");
  return *found;
}

bool accepts(const Reader &reader, std::string_view bytes) {
  // Made once, and not of the file.
  plannedSpace();
  MemoryPeak memory;
  std::optional<Error> error = reader.read(bytes);
  demand(memory.bytes() <= boundBytes(bytes.size()),
         "memory is bounded by the size of the file");
  if (!error)
    return true;
  demand(error->id.size() == 6 && error->id.starts_with("MP") &&
             error->code != ExitCode::Ok && !error->what.empty(),
         "errors are typed");
  return false;
}

} // namespace monarch::test
