//===- ProcessTest.cpp - programs on processes over Gloo ------------------===//
//
// Ranks as `monarch-plan run` starts them, against the same program on threads;
// their figures against what the files predict and what the kernel sent; and
// every way to lose a rank.
//
//===----------------------------------------------------------------------===//
#include "core/program/Verify.h"
#include "core/support/Files.h"
#include "core/support/Json.h"
#include "runtime/Session.h"
#include "runtime/data/FileSources.h"
#include "runtime/launch/LocalRun.h"
#include "test/support/TemporaryFolder.h"
#include "test/unit/runtime/Programs.h"
#include "test/unit/runtime/TensorFiles.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/sin.h>
#include <catch2/catch.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>

using namespace monarch;
using namespace monarch::runtime;
using namespace monarch::test;

namespace {

at::Tensor numbers(std::vector<int64_t> shape, double phase) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return at::sin(at::arange(count, at::TensorOptions(at::kDouble)) * 1.7 +
                 phase)
      .view(shape);
}

at::Tensor readTensor(const std::string &path, const std::string &name) {
  auto file = SafetensorsFile::open(path);
  REQUIRE(file);
  const SafetensorsTensor *found = file->find(name);
  REQUIRE(found);
  at::Tensor tensor = emptyTensor(found->type, found->shape);
  REQUIRE(!file->read(*found, 0, found->bytes, tensor.mutable_data_ptr()));
  return tensor;
}

/// Program files, weights and batches for `steps` steps.
struct Job {
  TemporaryFolder folder;
  TwoLayers shape;
  Program program;
  RunOptions options;

  Job(TwoLayers shape, int64_t steps) : shape(shape) {
    write(twoLayerProgram(shape));
    options.weights = folder / "weights.safetensors";
    options.data = folder / "batches.safetensors";
    options.optimizer.learningRate = 0.05;
    int64_t rows = shape.unitRows * shape.unitsPerReplica * shape.data * steps;
    writeTensors(options.weights,
                 {{"w1", numbers({shape.inner, shape.hidden}, 0.3)},
                  {"w2", numbers({shape.hidden, shape.outer}, 0.9)}});
    writeTensors(options.data, {{"x", numbers({rows, shape.inner}, 0.1)}});
  }

  /// Another program in the place of the first.
  void write(Program changed) {
    program = std::move(changed);
    predict(program);
    options.directory = folder / "program";
    std::filesystem::remove_all(options.directory);
    auto error = writeProgram(program, options.directory);
    REQUIRE((error ? toString(*error) : "") == "");
    TwoLayers one = shape;
    one.stages = 1;
    one.unitsPerReplica *= one.data;
    one.data = one.tensor = 1;
    one.sharded = false;
    Program oneProcess = twoLayerProgram(one);
    predict(oneProcess);
    REQUIRE(!writeProgram(oneProcess, folder / "program/one_process"));
  }
};

std::string textOf(const std::optional<Error> &error) {
  return error ? toString(*error) : "";
}

/// An environment variable for the ranks of one test.
class Variable {
public:
  Variable(const char *name, const std::string &value) : name(name) {
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() { ::unsetenv(name); }

private:
  const char *name;
};

TwoLayers fourRanks() {
  TwoLayers shape;
  shape.stages = 2;
  shape.tensor = 2;
  shape.unitsPerReplica = 4;
  return shape;
}

/// test::probe in the forward of stage 0, as an op of the user's model.
Program withProbe(Program program) {
  Role &role = program.roles[0];
  Instruction probe;
  probe.name = "test::probe";
  probe.operands = {role.inputs[0].value};
  ProgramValue result = role.values[role.inputs[0].value];
  result.name = "probed";
  role.values.push_back(result);
  probe.results = {static_cast<int32_t>(role.values.size()) - 1};
  probe.args = {OperandArg{0}};
  probe.op = 7;
  role.origins.push_back({probe.op, "net.probe", "net.py:12"});
  Instruction free;
  free.kind = InstructionKind::Free;
  free.operands = probe.results;
  auto &instructions = role.segments[0].instructions;
  instructions.insert(instructions.begin(), {probe, free});
  return program;
}

} // namespace

TEST_CASE("Processes give the numbers of threads, and their report") {
  TwoLayers shape = fourRanks();
  SECTION("two stages of two") {}
  SECTION("data and tensor axes, w1 spread at rest") {
    shape.stages = 1;
    shape.data = 2;
    shape.sharded = true;
    shape.optimizer = OptimizerKind::AdamW;
  }
  Job job(shape, 3);
  job.options.optimizer.clipNorm = 1;
  job.options.optimizer.weightDecay = 0.01;
  job.options.verify = true;
  job.options.saveWeights = job.folder / "saved.safetensors";
  job.options.report = job.folder / "report.json";
  REQUIRE(textOf(runLocal(job.options, MONARCH_RUN)) == "");

  auto weights = openWeights(job.options.weights);
  auto batches = FileBatches::open(job.options.data);
  REQUIRE(weights);
  REQUIRE(batches);
  SessionOptions session;
  session.steps = 3;
  session.optimizer = job.options.optimizer;
  auto threads = runThreads(job.program, **weights, **batches, session);
  REQUIRE(threads);
  for (const char *name : {"w1", "w2"}) {
    at::Tensor saved = readTensor(job.options.saveWeights, name);
    CHECK((saved - threads->weights.at(name)).abs().max().item().toDouble() <
          1e-12);
  }

  auto text = readFile(job.options.report);
  REQUIRE(text);
  auto json = parseJson(*text, "report");
  REQUIRE(json);
  CHECK(json->at("schema") == "monarch.report/1");
  REQUIRE(json->at("losses").size() == 3);
  for (int step = 0; step < 3; ++step)
    CHECK(json->at("losses")[step].get<double>() ==
          Approx(threads->losses[step]).epsilon(1e-12));
  REQUIRE(json->at("ranks").size() == 4);
  std::map<std::string, int64_t> bytes;
  int64_t peak = 0;
  for (const auto &rank : json->at("ranks")) {
    for (const auto &[kind, count] : rank.at("bytes").items())
      bytes[kind] += count.get<int64_t>();
    peak = std::max(peak, rank.at("peak_tensor_bytes").get<int64_t>());
    CHECK(rank.at("step_seconds").size() == 3);
  }
  CHECK(
      bytes ==
      json->at("predicted").at("bytes").get<std::map<std::string, int64_t>>());
  CHECK(bytes.at("all_reduce") > 0);
  CHECK(peak <= job.program.predictedPeakBytes);
  for (const char *figure : {"loss", "gradients", "buffers", "weights"})
    CHECK(json->at("verify").at(figure).get<double>() <= 1e-12);
}

TEST_CASE("Verification finds numbers that are not those of one process") {
  Job job(fourRanks(), 1);
  job.options.verify = true;
  // The loss is counted twice.
  for (Role &role : job.program.roles)
    for (Segment &segment : role.segments)
      for (Instruction &instruction : segment.instructions)
        if (instruction.name == "aten::mul.Scalar")
          instruction.args[1] = 1.0;
  job.write(job.program);
  auto error = runLocal(job.options, MONARCH_RUN);
  REQUIRE(error);
  CHECK(error->id == "MP4013");
  CHECK(error->code == ExitCode::RunFailed);
  CHECK(error->where == "loss of step 1");
}

TEST_CASE("What the kernel sends is what is counted") {
  TwoLayers shape = fourRanks();
  // Large enough for shares of bytes to mean something.
  shape.inner = 128;
  shape.hidden = 256;
  shape.unitRows = 64;
  SECTION("sends and all-reduces") {}
  SECTION("all-gather and reduce-scatter") {
    shape.stages = 1;
    shape.data = 2;
    shape.sharded = true;
  }
  SECTION("uneven blocks") {
    shape.stages = 1;
    shape.data = 2;
    shape.inner = 127;
    shape.sharded = true;
  }
  Job job(shape, 1);
  Variable gauge("MONARCH_TEST_TCP", "1");
  CHECK(textOf(runLocal(job.options, RANK_PROBE)) == "");
}

TEST_CASE("A rank that is lost ends the job with one cause") {
  Job job(fourRanks(), 2);
  job.write(withProbe(job.program));
  // A stopped process is missed after the heartbeat window of 5 s; a hung one
  // when another waits longer than the timeout for it.
  auto [mode, reason] = GENERATE(
      table<std::string, std::string>({{"exit", "exited with 3 without a word"},
                                       {"kill", "killed by signal 9"},
                                       {"stop", "fell silent"},
                                       {"hang", "Timed out"}}));
  Variable fault("MONARCH_TEST_FAULT", "1:" + mode);
  auto start = std::chrono::steady_clock::now();
  auto error = runLocal(job.options, RANK_PROBE);
  auto seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  INFO(mode << ": " << textOf(error));
  REQUIRE(error);
  CHECK(error->code == ExitCode::LostRank);
  CHECK(error->what.find(reason) != std::string::npos);
  // A stopped rank's last sign may be older than its stop; whoever waits for a
  // hung rank cannot know that it is the one.
  if (mode == "exit" || mode == "kill")
    CHECK(error->where ==
          "rank 1, step 1, forward of unit 0, test::probe, op 7 of net.probe "
          "(net.py:12) -> 'probed'");
  if (mode == "stop")
    CHECK(error->where.find("rank 1, ") != std::string::npos);
  // Generous: a promise of seconds, not a measurement.
  CHECK(seconds < 60);
}

TEST_CASE("A rank whose op fails says rank, step, op and reason for all") {
  Job job(fourRanks(), 2);
  job.write(withProbe(job.program));
  Variable fault("MONARCH_TEST_FAULT", "1:throw");
  auto error = runLocal(job.options, RANK_PROBE);
  REQUIRE(error);
  CHECK(error->code == ExitCode::RunFailed);
  CHECK(error->what == "the probe was told to fail");
  CHECK(error->where ==
        "rank 1, step 1, forward of unit 0, test::probe, op 7 of net.probe "
        "(net.py:12) -> 'probed'");
}

namespace {

struct Finished {
  int status;
  std::string output;
};

/// `executable` under torchrun, as its users start it.
Finished torchrun(const std::string &executable,
                  const std::vector<std::string> &arguments) {
  std::string command = TORCH_PYTHON " -m torch.distributed.run --standalone "
                                     "--nproc-per-node 4 --no-python " +
                        executable;
  for (const std::string &argument : arguments)
    command += " '" + argument + "'";
  std::FILE *pipe = ::popen((command + " 2>&1").c_str(), "r");
  REQUIRE(pipe);
  Finished finished;
  char buffer[4096];
  while (size_t count = std::fread(buffer, 1, sizeof(buffer), pipe))
    finished.output.append(buffer, count);
  finished.status = ::pclose(pipe);
  return finished;
}

} // namespace

TEST_CASE("torchrun starts the ranks as well") {
  Job job(fourRanks(), 2);
  job.options.verify = true;
  Finished finished = torchrun(MONARCH_RUN, argumentsOf(job.options));
  INFO(finished.output);
  CHECK(finished.status == 0);
  CHECK(finished.output.find("equal to one process") != std::string::npos);
}

TEST_CASE("torchrun names the first cause") {
  Job job(fourRanks(), 2);
  job.write(withProbe(job.program));
  Variable fault("MONARCH_TEST_FAULT", "1:throw");
  Finished finished = torchrun(RANK_PROBE, {job.options.directory});
  INFO(finished.output);
  CHECK(finished.status != 0);
  CHECK(finished.output.find("MP4002: rank 1, step 1, forward of unit 0, "
                             "test::probe, op 7 of net.probe (net.py:12) -> "
                             "'probed': the probe was told to fail") !=
        std::string::npos);
}

TEST_CASE("Ranks of different programs do not start") {
  Job job(fourRanks(), 1);
  for (int rank = 0; rank < 4; ++rank) {
    Program program = job.program;
    program.planDigest = rank == 2 ? "of another plan" : "of one plan";
    REQUIRE(
        !writeProgram(program, job.folder / ("rank-" + std::to_string(rank))));
  }
  Finished finished =
      torchrun("/bin/sh", {"-c", "exec " MONARCH_RUN " " +
                                     (job.folder / "rank-$RANK --init 1")});
  INFO(finished.output);
  CHECK(finished.status != 0);
  CHECK(finished.output.find("MP4012") != std::string::npos);
  CHECK(finished.output.find("rank 2 has another program than rank 0") !=
        std::string::npos);
  CHECK(finished.output.find("loss") == std::string::npos);
}

TEST_CASE("What cannot run does not start") {
  Job job(fourRanks(), 1);
  SECTION("ranks that would disagree about a size") {
    for (Segment &segment : job.program.roles[0].segments)
      for (Instruction &instruction : segment.instructions)
        if (instruction.kind == InstructionKind::Receive &&
            instruction.tag == 2)
          job.program.roles[0].values[instruction.results[0]].shape[0] =
              Expr::constant(77);
    job.write(job.program);
    auto error = runLocal(job.options, MONARCH_RUN);
    REQUIRE(error);
    CHECK(error->id.substr(0, 3) == "MP2");
  }
  SECTION("weights of another model") {
    writeTensors(job.options.weights,
                 {{"v1", numbers({5, 7}, 0)}, {"w2", numbers({7, 4}, 0)}});
    auto error = runLocal(job.options, MONARCH_RUN);
    REQUIRE(error);
    CHECK(error->id == "MP4010");
    CHECK(error->code == ExitCode::Stale);
    // Each rank misses another tensor; the lowest one's is told, always.
    CHECK(error->where == "w1");
  }
  SECTION("no program at all") {
    job.options.directory = job.folder / "nothing";
    CHECK(runLocal(job.options, MONARCH_RUN)->code == ExitCode::BadInput);
  }
}
