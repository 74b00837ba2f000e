//===- FamiliesTest.cpp - built graphs against imported ones --------------===//
#include "core/registry/Rule.h"
#include "core/support/Files.h"
#include "planner/families/ModelShape.h"
#include "planner/work/Work.h"

#include <catch2/catch.hpp>
#include <map>

using namespace monarch;
using namespace monarch::planner;

namespace {

Graph fixture(const std::string &name) {
  auto text = readFile(std::string(MONARCH_FIXTURES) + "/graphs/" + name);
  REQUIRE(text);
  auto graph = readGraph(*text);
  REQUIRE(graph);
  auto one = withUnitRows(*graph, 1);
  REQUIRE(one);
  return *one;
}

/// test/models/models.py at size "small".
ModelShape smallShape(ModelFamily family) {
  ModelShape shape;
  shape.family = family;
  shape.layers = 2;
  shape.hidden = 32;
  shape.heads = 4;
  shape.kvHeads = family == ModelFamily::Gpt ? 4 : 2;
  shape.headDim = 8;
  shape.mlpHidden = family == ModelFamily::Gpt ? 128 : 64;
  shape.vocabulary = 64;
  shape.sequence = 8;
  shape.isTied = family == ModelFamily::Gpt;
  shape.type = DType::Float32;
  return shape;
}

TensorType typeOf(const Graph &graph, ValueId id) {
  if (id == None)
    return {};
  return {graph.value(id).type, graph.value(id).shape};
}

/// Ops that carry a row's activations, and what they cost: the masks, tables
/// and label shifts that model code makes on the side are left out.
struct Census {
  std::map<std::string, int> ops;
  int64_t flops = 0;
};
Census census(const Graph &graph) {
  Census census;
  for (const Op &op : graph.ops) {
    bool isWide = false;
    for (const std::vector<ValueId> *list : {&op.operands, &op.results})
      for (ValueId id : *list)
        isWide |= id != None && isFloating(graph.value(id).type) &&
                  !graph.value(id).batch.empty() &&
                  graph.value(id).batch[0] != 0;
    if (!isWide || isViewCall(op.name))
      continue;
    ++census.ops[op.name];
    std::vector<TensorType> operands, results;
    for (ValueId id : op.operands)
      operands.push_back(typeOf(graph, id));
    for (ValueId id : op.results)
      results.push_back(typeOf(graph, id));
    census.flops += callCost(op.name, operands, results).flops;
  }
  return census;
}

std::vector<Product> productsOf(const ModelWork &work, int layer) {
  const BlockWork &block = work.kinds[work.layers[layer]];
  std::vector<Product> all = block.forward.products;
  all.insert(all.end(), block.backward.products.begin(),
             block.backward.products.end());
  return all;
}

} // namespace

TEST_CASE("A built GPT has the ops and FLOPs of the exported one") {
  auto built = buildGraph(smallShape(ModelFamily::Gpt));
  REQUIRE(built);
  Census own = census(*built), exported = census(fixture("gpt-small.json"));
  CHECK(own.ops == exported.ops);
  CHECK(own.flops == exported.flops);
}

TEST_CASE("A built Llama has the ops and FLOPs of the exported one") {
  auto built = buildGraph(smallShape(ModelFamily::Llama));
  REQUIRE(built);
  Census own = census(*built), exported = census(fixture("llama-small.json"));
  CHECK(own.ops == exported.ops);
  CHECK(own.flops == exported.flops);
}

TEST_CASE("Built and exported graphs give the same work") {
  auto [family, file] =
      GENERATE(std::pair(ModelFamily::Gpt, std::string("gpt-small.json")),
               std::pair(ModelFamily::Llama, std::string("llama-small.json")));
  auto hasOwnModules = GENERATE(false, true);
  KernelStyle style{hasOwnModules ? Fusion::Local : Fusion::None,
                    hasOwnModules};
  auto built = workOf(*buildGraph(smallShape(family)), style);
  auto exported = workOf(fixture(file), style);
  REQUIRE(built);
  REQUIRE(exported);
  CHECK(built->layers.size() == exported->layers.size());
  CHECK(productsOf(*built, 0) == productsOf(*exported, 0));
  CHECK(built->kinds[0].tensorParameters ==
        exported->kinds[0].tensorParameters);
  CHECK(built->kinds[0].forward.traffic == exported->kinds[0].forward.traffic);
  CHECK(built->kinds[0].forward.reductions.size() ==
        exported->kinds[0].forward.reductions.size());
  CHECK(built->kinds[0].backward.reductions.size() ==
        exported->kinds[0].backward.reductions.size());
  CHECK(built->head.backward.products == exported->head.backward.products);
  CHECK(built->isTied == exported->isTied);
}

TEST_CASE("Experts and latent attention build") {
  ModelShape shape = smallShape(ModelFamily::Llama);
  shape.kvHeads = shape.heads;
  shape.experts = ExpertShape{8, 2, 16, 16, 1};
  shape.latent = LatentShape{24, 16, 8, 4, 8};
  auto graph = buildGraph(shape);
  REQUIRE(graph);
  auto work = workOf(*graph, {Fusion::Local, true});
  REQUIRE(work);
  REQUIRE(work->kinds.size() == 2);
  CHECK(work->kinds[0].expertParameters == 0);
  CHECK(work->kinds[1].expertParameters == 8 * 3 * 32 * 16);
  CHECK(work->kinds[1].forward.dispatches.size() == 2);
  double total = 0;
  for (const Parameter &parameter : graph->parameters)
    total += static_cast<double>(elementCount(graph->value(parameter.value)));
  CHECK(work->parameterCount() == total);
}

TEST_CASE("Numbers that make no model are refused") {
  ModelShape shape = smallShape(ModelFamily::Llama);
  shape.kvHeads = 3;
  REQUIRE_FALSE(buildGraph(shape));
  CHECK(buildGraph(shape).error().id == "MP1201");
}
