//===- ModelSummaryTest.cpp - what inspect says of a graph ----------------===//
//
// Graphs of exported models, whose figures are known from their shapes.
//
//===----------------------------------------------------------------------===//
#include "planner/describe/ModelSummary.h"
#include "core/support/Files.h"

#include <algorithm>
#include <catch2/catch.hpp>

using namespace monarch;
using namespace monarch::planner;

namespace {

struct Described {
  Graph graph;
  ModelSummary summary;
};

Described describe(const std::string &model) {
  auto text = readFile(MONARCH_FIXTURES "/graphs/" + model + ".json");
  REQUIRE(text);
  auto graph = readGraph(*text);
  REQUIRE(graph);
  const StrategySpace space(*graph);
  ModelSummary summary = summarizeModel(space);
  return {std::move(*graph), std::move(summary)};
}

std::vector<int64_t> degrees(const ModelSummary &summary, bool even) {
  std::vector<int64_t> result;
  for (const TensorDegree &degree : summary.tensorDegrees)
    if (degree.even == even)
      result.push_back(degree.degree);
  return result;
}

} // namespace

TEST_CASE("Parameters of repeated modules are one group, ties count once") {
  const ModelSummary summary = describe("gpt-odd").summary;
  // width 48, 2 blocks, vocabulary 97, 7 positions; head tied to the tokens
  const int64_t block = 2 * 2 * 48 + (144 * 48 + 144) + (48 * 48 + 48) +
                        (192 * 48 + 192) + (48 * 192 + 48);
  CHECK(summary.parameterCount() == 97 * 48 + 7 * 48 + 2 * block + 2 * 48);
  CHECK(summary.parameterCount(true) == summary.parameterCount());
  REQUIRE(summary.ties.size() == 1);
  CHECK(summary.ties[0] ==
        std::vector<std::string>{"tokens.weight", "head.weight"});
  const auto qkv = std::find_if(
      summary.parameters.begin(), summary.parameters.end(),
      [](const ParameterGroup &g) { return g.name == "blocks.*.qkv.weight"; });
  REQUIRE(qkv != summary.parameters.end());
  CHECK(qkv->count == 2);
  CHECK(qkv->elements() == 2 * 144 * 48);
}

TEST_CASE("Work is two FLOPs a weight and row forward, twice that backward") {
  const Described mlp = describe("mlp-small");
  int64_t matrices = 0;
  for (const ParameterGroup &group : mlp.summary.parameters)
    if (group.shape.size() == 2)
      matrices += group.elements();
  const int64_t products = 2 * matrices * mlp.graph.unitRows;
  // The rest is elementwise.
  CHECK(mlp.summary.forwardFlops >= products);
  CHECK(mlp.summary.forwardFlops < products * 11 / 10);
  // The first layer's input needs no gradient.
  CHECK(mlp.summary.backwardFlops > products);
  CHECK(mlp.summary.backwardFlops < 2 * products * 11 / 10);
}

TEST_CASE("Equal modules are found, dropout and all") {
  for (const char *model :
       {"gpt-odd", "gpt-dropout", "gpt2-small", "llama-small", "llama-odd"}) {
    INFO(model);
    const Described described = describe(model);
    REQUIRE(described.summary.blocks.size() == 1);
    const RepeatedBlock &block = described.summary.blocks[0];
    CHECK(block.indices.size() >= 2);
    CHECK(block.indices.front() == 0);
    const auto count = static_cast<int64_t>(block.indices.size());
    CHECK(count * block.forwardFlops < described.summary.forwardFlops);
    CHECK(count * block.forwardFlops > described.summary.forwardFlops / 2);
  }
}

TEST_CASE("A module that differs is no part of the repeated ones") {
  Described gpt = describe("gpt-odd");
  const auto inSecond = [](const Op &op) {
    return op.phase == Phase::Forward && op.name == "monarch::attention" &&
           op.module.find("blocks.1") != std::string::npos;
  };
  auto attention =
      std::find_if(gpt.graph.ops.begin(), gpt.graph.ops.end(), inSecond);
  REQUIRE(attention != gpt.graph.ops.end());
  for (Arg &arg : attention->args)
    if (auto *scale = std::get_if<double>(&arg); scale && *scale != 0)
      *scale *= 2;
  CHECK(summarizeModel(StrategySpace(gpt.graph)).blocks.empty());
}

TEST_CASE("Heads limit the tensor degrees, groups of queries are counted") {
  const ModelSummary gpt = describe("gpt-odd").summary;
  REQUIRE(gpt.heads.size() == 1);
  CHECK(gpt.heads[0].query == 6);
  CHECK(gpt.heads[0].keyValue == 6);
  CHECK(degrees(gpt, true) == std::vector<int64_t>{2, 3, 6});
  // One axis of 2 splits the heads, the other cannot.
  const std::vector<int64_t> partly = degrees(gpt, false);
  CHECK(std::count(partly.begin(), partly.end(), 4) == 1);
  CHECK(std::count(partly.begin(), partly.end(), 5) == 0);

  const ModelSummary llama = describe("llama-odd").summary;
  REQUIRE(llama.heads.size() == 1);
  CHECK(llama.heads[0].query == 6);
  CHECK(llama.heads[0].keyValue == 3);
}

TEST_CASE("A vocabulary that does not divide is named with its weight") {
  const Described gpt = describe("gpt-odd");
  CHECK(std::count(gpt.summary.splitDims.begin(), gpt.summary.splitDims.end(),
                   SplitDim{"tokens.weight", 0, 97}) == 1);
  CHECK(toText(gpt.graph, gpt.summary)
            .find("tokens.weight dim 0 (97): uneven blocks under tp = 2 3 6") !=
        std::string::npos);
  // Through the transpose of a linear layer, too.
  CHECK(std::count(gpt.summary.splitDims.begin(), gpt.summary.splitDims.end(),
                   SplitDim{"blocks.*.up.weight", 0, 192}) == 1);
}
