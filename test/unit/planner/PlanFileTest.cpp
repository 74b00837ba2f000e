//===- PlanFileTest.cpp - rules by module path, plan files ----------------===//
#include "planner/plan/PlanFile.h"
#include "planner/plan/GlobRules.h"
#include "test/support/GraphBuilder.h"

#include <catch2/catch.hpp>
#include <random>

using namespace monarch;
using namespace monarch::planner;
using monarch::test::GraphBuilder;

TEST_CASE("Globs match within a segment, double stars across") {
  CHECK(globMatches("h.*.attn#mm#0", "h.11.attn#mm#0"));
  CHECK_FALSE(globMatches("h.*.attn", "h.1.x.attn"));
  CHECK(globMatches("h.**", "h.1.x.attn#mm#0"));
  CHECK(globMatches("**", ""));
  CHECK_FALSE(globMatches("h.1.**", "h.10.attn"));
  CHECK(globMatches("a*b*c", "aXbYc"));
  CHECK_FALSE(globMatches("a", "ab"));
  CHECK_FALSE(globMatches("", "a"));
}

TEST_CASE("Rules give back any table") {
  for (unsigned seed = 0; seed < 200; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    GlobTable table;
    int layers = 1 + random() % 5, values = 1 + random() % 3;
    for (int layer = 0; layer < layers; ++layer)
      for (const char *part :
           {"attn#mm#0", "attn#mm#1", "mlp#gelu#0", "#add#0"})
        table.emplace_back("h." + std::to_string(layer) + "." + part,
                           std::string(1, 'a' + random() % values));
    table.emplace_back("#mm#0", "a");
    table.emplace_back("head*#mm#0", "b");
    for (auto compress : {compressByPath, compressBySubtree}) {
      std::vector<GlobRule> rules = compress(table, "a");
      for (const auto &[key, value] : table)
        CHECK(expandKey(rules, key, "a") == value);
      CHECK(unmatchedPatterns(rules,
                              [&] {
                                std::vector<std::string> keys;
                                for (const auto &entry : table)
                                  keys.push_back(entry.first);
                                return keys;
                              }())
                .empty());
    }
  }
}

TEST_CASE("Equal layers share one rule") {
  GlobTable table;
  for (int layer = 0; layer < 12; ++layer)
    table.emplace_back("h." + std::to_string(layer) + ".attn#mm#0", "x");
  CHECK(compressByPath(table, "") ==
        std::vector<GlobRule>{{"h.*.attn#mm#0", "x"}});
  GlobTable stages;
  for (int layer = 0; layer < 4; ++layer)
    for (const char *op : {"mm", "add"})
      stages.emplace_back("h." + std::to_string(layer) + "#" + op + "#0",
                          layer < 2 ? "0" : "1");
  CHECK(compressBySubtree(stages, "0") ==
        std::vector<GlobRule>{{"h.2#**", "1"}, {"h.3#**", "1"}});
}

namespace {

/// Two layers of mm and gelu, forward only.
Graph twoLayers() {
  GraphBuilder b;
  ValueId x = b.input("x", {8, 4}, DType::Float64);
  for (int layer = 0; layer < 2; ++layer) {
    std::string name = "layers." + std::to_string(layer);
    ValueId w = b.parameter(name + ".weight", {4, 4});
    x = b.op("aten::mm", {x, w}, {OperandArg{0}, OperandArg{1}}, {8, 4});
    b.graph.ops.back().module = name;
    x = b.op("aten::gelu", {x}, {OperandArg{0}, std::string("none")}, {8, 4});
    b.graph.ops.back().module = name;
  }
  b.graph.outputs = {x};
  return b.finish();
}

Decisions randomDecisions(const StrategySpace &space, unsigned seed) {
  std::mt19937 random(seed);
  const Graph &graph = space.graph();
  Decisions d = oneProcess(graph, space, 4);
  d.mesh.axes = {{"dp", 2, AxisRole::Data},
                 {"tp0", 2, AxisRole::Tensor},
                 {"tp1", 3, AxisRole::Tensor}};
  d.stages = 2;
  d.optimizer = random() % 2 ? OptimizerKind::AdamW : OptimizerKind::SGD;
  d.masterWeights = random() % 2 == 0;
  d.schedule = random() % 2 ? ScheduleKind::GPipe : ScheduleKind::OneFOneB;
  if (random() % 2)
    d.tables.set(4, 2, {0, 1, 4});
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    int count = static_cast<int>(space.choices(static_cast<OpId>(i)).size());
    d.stage[i] = random() % 2;
    d.choice[i] = {0, static_cast<int>(random() % (count + 1)) - 1,
                   static_cast<int>(random() % (count + 1)) - 1};
    d.passPartialCotangent[i] = {false, random() % 2 == 0, random() % 2 == 0};
    d.keepGathered[i] = random() % 2 == 0;
  }
  for (size_t p = 0; p < graph.parameters.size(); ++p) {
    d.parameterLayout[p] = Layout::replicated(3);
    if (random() % 2)
      d.parameterLayout[p] = withState(d.parameterLayout[p], 2,
                                       AxisState::split(random() % 2, {0}));
    if (random() % 2)
      d.parameterLayout[p] =
          withState(d.parameterLayout[p], 0, AxisState::split(0, {0}));
    d.parameterLayout[p] = canonical(d.parameterLayout[p]);
  }
  return normalised(std::move(d), space);
}

PlanFile planOf(const Decisions &decisions, const StrategySpace &space) {
  PlanFile plan;
  plan.document["schema"] = "monarch.plan/1";
  plan.document["inputs"] = {{"graph", {{"digest", "aa"}}},
                             {"cluster", {{"digest", "bb"}}}};
  plan.document["decisions"] = compressDecisions(decisions, space);
  return plan;
}

} // namespace

TEST_CASE("Decisions survive their file") {
  Graph graph = twoLayers();
  StrategySpace space(graph);
  for (unsigned seed = 0; seed < 100; ++seed) {
    INFO("seed " << seed);
    Decisions decisions = randomDecisions(space, seed);
    PlanFile plan = planOf(decisions, space);
    Expected<PlanFile> read = readPlan(writePlan(plan));
    REQUIRE(read);
    CHECK(writePlan(*read) == writePlan(plan));
    Expected<Decisions> back = expandDecisions(*read, space);
    REQUIRE(back);
    CHECK(*back == decisions);
  }
}

TEST_CASE("Plans without master weights do not speak of them") {
  Graph graph = twoLayers();
  StrategySpace space(graph);
  Decisions decisions = randomDecisions(space, 1);
  decisions.masterWeights = true;
  Json said = compressDecisions(decisions, space);
  CHECK(said["master_weights"] == "float32");
  decisions.masterWeights = false;
  said.erase("master_weights");
  CHECK(compressDecisions(decisions, space) == said);
  PlanFile plan = planOf(decisions, space);
  CHECK_FALSE(expandDecisions(plan, space)->masterWeights);
}

TEST_CASE("A plan keeps fields that it does not know") {
  Graph graph = twoLayers();
  StrategySpace space(graph);
  PlanFile plan = planOf(randomDecisions(space, 1), space);
  plan.document["note"] = "by hand";
  std::string text = writePlan(plan);
  CHECK(writePlan(*readPlan(text)) == text);
}

TEST_CASE("Wrong plan files are refused") {
  for (const char *text :
       {"", "{}", "{\"schema\": \"monarch.plan/2\", \"inputs\": {}}",
        "{\"schema\": \"monarch.plan/1\", \"inputs\": {}}"}) {
    Expected<PlanFile> plan = readPlan(text);
    REQUIRE_FALSE(plan);
    CHECK(plan.error().code == ExitCode::BadInput);
  }
  Graph graph = twoLayers();
  StrategySpace space(graph);
  PlanFile good = planOf(randomDecisions(space, 1), space);
  auto refused = [&](auto change) {
    PlanFile plan = good;
    change(plan.document["decisions"]);
    Expected<Decisions> read = expandDecisions(plan, space);
    return !read && read.error().code == ExitCode::BadInput;
  };
  CHECK(refused([](Json &d) { d["mesh"][0]["role"] = "dada"; }));
  CHECK(refused([](Json &d) { d["optimizer"] = "lion"; }));
  CHECK(refused([](Json &d) { d["master_weights"] = "bfloat16"; }));
  CHECK(refused([](Json &d) { d["choices"][0]["choice"] = "x y z"; }));
  CHECK(
      refused([](Json &d) { d["choices"][0]["match"] = "other#aten::mm#0"; }));
  CHECK(
      refused([](Json &d) { d["layouts"][0]["layout"] = Json::array({"R"}); }));
  CHECK(refused([](Json &d) { d.erase("stages"); }));
}

TEST_CASE("A plan of another model or cluster is stale") {
  Graph graph = twoLayers();
  StrategySpace space(graph);
  PlanFile plan = planOf(randomDecisions(space, 1), space);
  CHECK_FALSE(checkInputs(plan, "aa", "bb"));
  CHECK_FALSE(checkInputs(plan, "aa", ""));
  CHECK(checkInputs(plan, "ab", "bb")->id == "MP2211");
  CHECK(checkInputs(plan, "aa", "bc")->id == "MP2212");
  CHECK(checkInputs(plan, "aa", "bc")->code == ExitCode::Stale);
}

TEST_CASE("Decisions are checked against the graph") {
  Graph graph = twoLayers();
  StrategySpace space(graph);
  Decisions one = oneProcess(space.graph(), space, 4);
  CHECK(check(one, space).empty());
  auto wrong = [&](auto change) {
    Decisions d = one;
    d.mesh.axes = {{"dp", 2, AxisRole::Data}, {"tp", 2, AxisRole::Tensor}};
    for (auto &row : d.choice)
      row = {0, 0};
    for (auto &row : d.passPartialCotangent)
      row = {false, false};
    for (Layout &layout : d.parameterLayout)
      layout = Layout::replicated(2);
    REQUIRE(check(d, space).empty());
    change(d);
    return !check(d, space).empty();
  };
  CHECK(wrong([](Decisions &d) { d.choice[0][0] = 1; }));
  CHECK(wrong([](Decisions &d) { d.choice[0][1] = 99; }));
  CHECK(wrong([](Decisions &d) { d.stage[0] = 1; }));
  CHECK(wrong([](Decisions &d) {
    d.stages = 2;
    d.stage = {1, 0, 1, 1};
  }));
  CHECK(wrong([](Decisions &d) { d.globalRows = 3; }));
  CHECK(wrong([](Decisions &d) { d.unitRows = 2; }));
  CHECK(wrong([](Decisions &d) { d.choice.pop_back(); }));
  CHECK(wrong([](Decisions &d) {
    d.parameterLayout[0].states[0] = AxisState::partial();
  }));
}
