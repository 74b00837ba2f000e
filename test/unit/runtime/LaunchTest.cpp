//===- LaunchTest.cpp - places, reports, memory, whole tensors ------------===//
//
// What stands around a run: the environment's words, the report's figures, the
// allocator's count, blocks and wholes.
//
//===----------------------------------------------------------------------===//
#include "core/support/Json.h"
#include "runtime/Session.h"
#include "runtime/comm/Failure.h"
#include "runtime/data/MemorySources.h"
#include "runtime/exec/Verification.h"
#include "runtime/exec/WideStep.h"
#include "runtime/launch/JobPlace.h"
#include "runtime/launch/Report.h"
#include "runtime/launch/RunOptions.h"
#include "test/unit/runtime/Programs.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <catch2/catch.hpp>

#include <thread>

using namespace monarch;
using namespace monarch::runtime;
using namespace monarch::test;

namespace {

Expected<JobPlace> placeOf(std::map<std::string, std::string> variables) {
  return placeFromEnvironment([&](const char *name) -> const char * {
    auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

const std::map<std::string, std::string> plain = {{"RANK", "2"},
                                                  {"WORLD_SIZE", "4"},
                                                  {"MASTER_ADDR", "host"},
                                                  {"MASTER_PORT", "29500"}};

std::map<std::string, std::string> with(std::string name, std::string value) {
  auto variables = plain;
  variables[name] = value;
  return variables;
}

} // namespace

TEST_CASE("The environment says which rank this is") {
  auto place = placeOf(plain);
  REQUIRE(place);
  CHECK(place->rank == 2);
  CHECK(place->worldSize == 4);
  CHECK(place->store.host == "host");
  CHECK(place->store.port == 29500);
  CHECK(!place->store.isServer);
  CHECK(place->store.prefix.empty());
  CHECK(placeOf(with("RANK", "0"))->store.isServer);

  auto elastic = with("TORCHELASTIC_USE_AGENT_STORE", "True");
  elastic["RANK"] = "0";
  elastic["TORCHELASTIC_RESTART_COUNT"] = "3";
  auto client = placeOf(elastic);
  REQUIRE(client);
  CHECK(!client->store.isServer);
  CHECK(client->store.prefix == "/worker/attempt_3");

  auto alone = placeOf({});
  REQUIRE(alone);
  CHECK(alone->worldSize == 1);
}

TEST_CASE("An environment that is wrong is refused by name") {
  for (auto [name, value, text] :
       std::vector<std::tuple<std::string, std::string, std::string>>{
           {"RANK", "4", "RANK is '4', not a number from 0 to 3"},
           {"RANK", "two", "RANK is 'two', not a number from 0 to 3"},
           {"MASTER_PORT", "", "MASTER_PORT is not set"},
           {"MASTER_ADDR", "", "MASTER_ADDR is not set"},
           {"WORLD_SIZE", "-1",
            "WORLD_SIZE is '-1', not a number from 1 to 1048576"}}) {
    auto place = placeOf(with(name, value));
    REQUIRE(!place);
    CHECK(place.error().id == "MP4007");
    CHECK(place.error().code == ExitCode::Usage);
    CHECK(place.error().what == text);
  }
}

TEST_CASE("Options are spelled so that they read back exactly") {
  RunOptions options;
  options.directory = "d";
  options.optimizer.learningRate = 0.1;
  options.initSeed = 5;
  options.verify = true;
  CHECK(argumentsOf(options) ==
        std::vector<std::string>{"d", "--init", "5", "--seed", "0", "--lr",
                                 "0.1", "--weight-decay", "0", "--clip-norm",
                                 "0", "--verify", "--timeout", "120"});
}

TEST_CASE("A rank's report survives the way to rank 0") {
  RankReport report;
  report.rank = 3;
  report.stage = 1;
  report.coordinates = {0, 1};
  report.traffic.bytes = {{"send", 12}};
  report.traffic.collectives = {{"send", 1}};
  report.peakTensorBytes = 99;
  report.stepSeconds = {0.5};
  report.segmentSeconds = {{"forward", 0.25}};
  auto read = readRankReport(writeRankReport(report));
  REQUIRE(read);
  CHECK(writeRankReport(*read) == writeRankReport(report));
  CHECK(read->traffic == report.traffic);
  CHECK(!readRankReport("{}"));
}

TEST_CASE("Executed traffic must sum to what was predicted") {
  Program program;
  program.predicted.bytes = {{"send", 30}, {"all_gather", 0}};
  program.predicted.collectives = {{"send", 3}};
  RankReport first, second;
  first.traffic.bytes = {{"send", 10}};
  first.traffic.collectives = {{"send", 1}};
  second.traffic.bytes = {{"send", 20}};
  second.traffic.collectives = {{"send", 2}};
  CHECK(!checkTraffic({first, second}, program));
  second.traffic.bytes["send"] = 21;
  CHECK(checkTraffic({first, second}, program)->id == "MP4008");
  second.traffic.bytes["send"] = 20;
  second.traffic.collectives["all_reduce"] = 1;
  CHECK(checkTraffic({first, second}, program)->code == ExitCode::RunFailed);
}

TEST_CASE("The first failure of a job stays") {
  auto store = JobStore::forThreads();
  CHECK(!reportedFailure(*store));
  Error first{"MP4002", ExitCode::RunFailed, "what", "where", "fix"};
  Error second{"MP4001", ExitCode::LostRank, "other", "", ""};
  CHECK(toString(reportFailure(*store, first)) == toString(first));
  Error cause = reportFailure(*store, second);
  CHECK(toString(cause) == toString(first));
  CHECK(cause.code == first.code);
  CHECK(!unpackError("nonsense"));
  CHECK(!unpackError("{\"id\": 3}"));
}

TEST_CASE("Blocks of a tensor lie where their indices say") {
  at::Tensor whole = at::arange(24, at::TensorOptions(at::kLong)).view({4, 6});
  for (const BlockIndices &indices :
       std::vector<BlockIndices>{{{1, 2}, {0, 1, 2}},
                                 {{3, 0}, {5, 1}},
                                 {{0, 1, 2, 3}, {2, 4}},
                                 {{}, {1}},
                                 {{0, 1, 2, 3}, {0, 1, 2, 3, 4, 5}}}) {
    at::Tensor block = takeBlock(whole, indices);
    CHECK(block.is_contiguous());
    CHECK(!block.is_alias_of(whole));
    at::Tensor copy = at::zeros({4, 6}, at::TensorOptions(at::kLong));
    putBlock(copy, indices, block);
    for (int64_t row = 0; row < 4; ++row)
      for (int64_t column = 0; column < 6; ++column) {
        bool isHeld = std::count(indices[0].begin(), indices[0].end(), row) &&
                      std::count(indices[1].begin(), indices[1].end(), column);
        CHECK(copy[row][column].item().toLong() ==
              (isHeld ? 6 * row + column : 0));
      }
  }
}

TEST_CASE("Blocks of eight bits are those of their bytes") {
  at::Tensor bytes = at::arange(24, at::TensorOptions(at::kByte)).view({4, 6});
  at::Tensor whole = bytes.view(at::kFloat8_e4m3fn);
  for (const BlockIndices &indices : std::vector<BlockIndices>{
           {{1, 2}, {0, 1, 2, 3, 4, 5}}, {{3, 0}, {5, 1}}}) {
    at::Tensor block = takeBlock(whole, indices);
    CHECK(block.scalar_type() == at::kFloat8_e4m3fn);
    CHECK(block.view(at::kByte).equal(takeBlock(bytes, indices)));
    at::Tensor copy = at::zeros({4, 6}, at::TensorOptions(at::kByte));
    at::Tensor narrow = copy.view(at::kFloat8_e4m3fn);
    putBlock(narrow, indices, block);
    CHECK(takeBlock(copy, indices).equal(block.view(at::kByte)));
  }
}

TEST_CASE("Memory is booked on the thread that asks, and given back") {
  installMemoryTally();
  MemoryTally mine, others;
  at::Tensor kept;
  {
    MemoryScope scope(&mine);
    kept = at::empty({1000}, at::TensorOptions(at::kFloat));
    at::Tensor gone = at::empty({500}, at::TensorOptions(at::kFloat));
    MemoryScope uncounted(nullptr);
    at::Tensor unseen = at::empty({9000}, at::TensorOptions(at::kFloat));
  }
  CHECK(mine.peakBytes() == 6000);
  CHECK(mine.currentBytes() == 4000);
  mine.restartPeak();
  CHECK(mine.peakBytes() == 4000);
  std::thread([&] {
    MemoryScope scope(&others);
    kept.reset();
  }).join();
  CHECK(mine.currentBytes() == 0);
  CHECK(others.peakBytes() == 0);
}

TEST_CASE("Verification of bfloat16 takes its rounding, not a term that is "
          "left out") {
  TwoLayers shape;
  shape.type = DType::BFloat16;
  Program program = twoLayerProgram(shape);
  at::TensorOptions real(at::kBFloat16);
  MemoryWeights weights({{"w1", at::ones({shape.inner, shape.hidden}, real)},
                         {"w2", at::ones({shape.hidden, shape.outer}, real)}});
  MemoryBatches batches({{"x", at::ones({shape.unitRows, shape.inner}, real)}});
  SessionOptions options;
  auto result = runThreads(program, weights, batches, options);
  REQUIRE(result);
  for (auto [factor, holds] :
       {std::pair(1 + 1.0 / 128, true), {0.75, false}, {0.9, false}}) {
    CAPTURE(factor);
    auto verification = Verification::create(program, program, weights,
                                             options.seed, options.optimizer);
    REQUIRE(verification);
    NamedTensors gradients = result->gradients[0];
    gradients["w2"] = gradients["w2"] * factor;
    REQUIRE(!(*verification)->step(0, batches, result->losses[0], gradients));
    CHECK((*verification)->figures().holds() == holds);
    CHECK((*verification)->figures().tolerance == Approx(0.0625));
  }
}

TEST_CASE("Where numbers cancel, what rounding does to one process is no "
          "mistake") {
  TwoLayers shape;
  shape.type = DType::Float32;
  Program program = twoLayerProgram(shape);
  at::TensorOptions real(at::kFloat);
  // The output, a factor of both gradients, is the sum of w2's columns.
  at::Tensor w2 = at::zeros({shape.hidden, shape.outer}, real);
  for (int64_t row = 0; row + 1 < shape.hidden; row += 2) {
    w2.select(0, row).fill_(4096.3);
    w2.select(0, row + 1).fill_(-4096.1);
  }
  const NamedTensors tensors{
      {"w1", at::ones({shape.inner, shape.hidden}, real) * 1e-3}, {"w2", w2}};
  MemoryWeights weights(tensors);
  MemoryBatches batches({{"x", at::ones({shape.unitRows, shape.inner}, real)}});
  SessionOptions options;
  auto own = stepFrom(program, false, tensors, options.seed, 0, batches);
  auto exact = stepFrom(program, true, tensors, options.seed, 0, batches);
  REQUIRE(own);
  REQUIRE(exact);
  CHECK(exact->gradients.at("w1").scalar_type() == at::kDouble);
  const at::Tensor &gradient = own->gradients.at("w1");
  const double rounding =
      (gradient - exact->gradients.at("w1")).abs().max().item().toDouble();
  const double tolerance = 1e-5;
  REQUIRE(rounding > tolerance * gradient.abs().max().item().toDouble());
  for (auto [times, holds] : {std::pair(2.0, true), {16.0, false}}) {
    CAPTURE(times);
    auto verification = Verification::create(program, program, weights,
                                             options.seed, options.optimizer);
    REQUIRE(verification);
    NamedTensors gradients = own->gradients;
    gradients["w1"] = gradient + times * rounding;
    REQUIRE(!(*verification)->step(0, batches, own->loss, gradients));
    const VerifyFigures &figures = (*verification)->figures();
    CHECK(figures.tolerance == tolerance);
    CHECK(figures.holds() == holds);
    CHECK(figures.gradients == Approx(tolerance * times / 4).epsilon(0.01));
    CHECK(figures.worst == "gradient of w1");
  }
}

TEST_CASE("Verification tells apart rounding, zeros and mistakes") {
  TwoLayers shape;
  Program program = twoLayerProgram(shape);
  at::TensorOptions real(at::kDouble);
  NamedTensors tensors{{"w1", at::ones({shape.inner, shape.hidden}, real)},
                       {"w2", at::ones({shape.hidden, shape.outer}, real)}};
  MemoryWeights weights(tensors);
  MemoryBatches batches({{"x", at::ones({shape.unitRows, shape.inner}, real)}});
  SessionOptions options;
  auto result = runThreads(program, weights, batches, options);
  REQUIRE(result);
  auto verification = Verification::create(program, program, weights,
                                           options.seed, options.optimizer);
  REQUIRE(verification);
  NamedTensors gradients = result->gradients[0];
  SECTION("equal") {
    REQUIRE(!(*verification)->step(0, batches, result->losses[0], gradients));
    (*verification)->compareWeights(result->weights);
    CHECK((*verification)->figures().holds());
  }
  SECTION("one entry of a gradient is off") {
    gradients["w2"] = gradients["w2"].clone();
    gradients["w2"][0][0] += 1;
    REQUIRE(!(*verification)->step(0, batches, result->losses[0], gradients));
    CHECK(!(*verification)->figures().holds());
    CHECK((*verification)->figures().worst == "gradient of w2");
  }
  SECTION("a gradient is not a number") {
    gradients["w1"] = gradients["w1"] / 0.0 * 0.0;
    REQUIRE(!(*verification)->step(0, batches, result->losses[0], gradients));
    CHECK(!(*verification)->figures().holds());
  }
  SECTION("a weight was updated otherwise") {
    REQUIRE(!(*verification)->step(0, batches, result->losses[0], gradients));
    NamedTensors other = result->weights;
    other["w1"] = other["w1"] * 1.001;
    (*verification)->compareWeights(other);
    CHECK((*verification)->figures().worst == "w1");
    CHECK(!(*verification)->figures().holds());
  }
  SECTION("a gradient is missing") {
    gradients.erase("w1");
    CHECK((*verification)->step(0, batches, result->losses[0], gradients)->id ==
          "MP4003");
  }
  SECTION("another model") {
    Program other = program;
    other.modelDigest = "another";
    CHECK(Verification::create(program, other, weights, 0, options.optimizer)
              .error()
              .code == ExitCode::Stale);
  }
}
