//===- GraphFileTest.cpp --------------------------------------------------===//
//
// The graph's file: what is written reads back the same, what is wrong is
// refused, and the digest is of what is computed.
//
//===----------------------------------------------------------------------===//
#include "core/graph/Graph.h"
#include "core/support/Files.h"

#include <catch2/catch.hpp>

#include <limits>

using namespace monarch;

namespace {

std::string fixture(const std::string &name) {
  auto text = readFile(std::string(MONARCH_GRAPHS) + "/" + name + ".json");
  REQUIRE(text);
  return *text;
}

Graph graphOf(const std::string &name) {
  auto graph = readGraph(fixture(name));
  REQUIRE(graph);
  return *graph;
}

const std::vector<std::string> Fixtures = {
    "mlp-small", "gpt-small", "gpt2-small", "llama-small", "gpt-dropout"};

std::string replaced(std::string text, const std::string &from,
                     const std::string &to) {
  size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

} // namespace

TEST_CASE("graphs of the test models read and write the same bytes") {
  for (const std::string &name : Fixtures) {
    CAPTURE(name);
    CHECK(writeGraph(graphOf(name)) == fixture(name));
  }
}

TEST_CASE("every kind of argument survives its file") {
  Graph graph = graphOf("mlp-small");
  const double infinity = std::numeric_limits<double>::infinity();
  Op &op = graph.ops[0];
  const std::vector<Arg> literals = {std::monostate{},
                                     OperandListArg{{0, None}},
                                     true,
                                     int64_t{-7},
                                     0.1,
                                     2.0,
                                     infinity,
                                     -infinity,
                                     std::string("text"),
                                     std::vector<int64_t>{1, 2},
                                     std::vector<double>{0.5, infinity},
                                     std::vector<bool>{true, false},
                                     std::vector<int64_t>{},
                                     DType::BFloat16,
                                     ResultSizes{0},
                                     ResultSize{0, 1},
                                     ResultsSizes{1}};
  op.args.insert(op.args.end(), literals.begin(), literals.end());
  auto back = readGraph(writeGraph(graph));
  REQUIRE(back);
  CHECK(back->ops[0].args == op.args);
}

TEST_CASE("bent files are refused with a named error") {
  const std::string text = fixture("mlp-small");
  const std::vector<std::string> bent = {
      "",
      "{}",
      "[1]",
      text.substr(0, text.size() / 2),
      replaced(text, "monarch.graph/1", "monarch.graph/2"),
      replaced(text, "\"unit_rows\"", "\"unit_cows\""),
      replaced(text, "\"kind\":\"input\"", "\"kind\":\"imput\""),
      replaced(text, "\"type\":\"float32\"", "\"type\":\"float31\""),
      replaced(text, "\"operands\":[", "\"extra\":1,\"operands\":["),
      replaced(text, "\"shape\":[128,32]", "\"shape\":\"128\"")};
  for (const std::string &candidate : bent) {
    CAPTURE(candidate.substr(0, 60));
    auto graph = readGraph(candidate);
    REQUIRE_FALSE(graph);
    CHECK((graph.error().id == "MP1020" || graph.error().id == "MP1903"));
    CHECK(graph.error().code == ExitCode::BadInput);
  }
}

TEST_CASE("graphs that break an invariant are refused") {
  const Graph good = graphOf("gpt-small");
  auto refused = [&](auto bend) {
    Graph graph = good;
    bend(graph);
    auto error = verify(graph);
    return error && error->id == "MP1021" && !readGraph(writeGraph(graph));
  };
  CHECK_FALSE(verify(good));
  CHECK(refused([](Graph &g) { g.ops[0].operands = {9999}; }));
  CHECK(refused([](Graph &g) { g.ops[1].operands[0] = g.ops[5].results[0]; }));
  CHECK(refused([](Graph &g) { g.ops[0].phase = Phase::Backward; }));
  CHECK(refused([](Graph &g) { g.ops.back().forward = 9999; }));
  CHECK(refused([](Graph &g) { g.ops[2].args[0] = OperandArg{7}; }));
  CHECK(refused([](Graph &g) { g.ops[2].args[0] = ResultSize{0, 9}; }));
  CHECK(refused([](Graph &g) { g.parameters[0].value = g.inputs[0].value; }));
  CHECK(refused([](Graph &g) { g.values[0].shape[0] += 1; }));
  CHECK(refused([](Graph &g) { g.loss = g.inputs[0].value; }));
  CHECK(refused([](Graph &g) { g.unitRows = 5; }));
}

TEST_CASE("the digest is of what is computed, not of where it comes from") {
  const Graph graph = graphOf("gpt-small");
  const std::string original = digest(graph);
  CHECK(original.size() == 64);

  Graph traces = graph;
  traces.ops[3].source = "other.py:1";
  traces.ops[3].module = "elsewhere";
  traces.parameters[0].storage.record = "data/weights/weight_99";
  CHECK(digest(traces) == original);

  Graph literal = graph;
  literal.ops[2].args.push_back(int64_t{3});
  CHECK(digest(literal) != original);
  Graph name = graph;
  name.values[0].name += "x";
  CHECK(digest(name) != original);
}

TEST_CASE("a dynamic graph takes any number of rows and back") {
  for (const std::string &name : Fixtures) {
    CAPTURE(name);
    const Graph graph = graphOf(name);
    REQUIRE(graph.dynamicBatch);
    auto scaled = withUnitRows(graph, 3);
    REQUIRE(scaled);
    CHECK_FALSE(verify(*scaled));
    CHECK(scaled->value(scaled->inputs[0].value).shape[0] == 3);
    auto back = withUnitRows(*scaled, graph.unitRows);
    REQUIRE(back);
    CHECK(writeGraph(*back) == writeGraph(graph));
    CHECK(withUnitRows(graph, 0).error().id == "MP1022");
    CHECK(withUnitRows(graph, int64_t(1) << 62).error().id == "MP1022");
  }
}

TEST_CASE("a static graph keeps its rows") {
  Graph graph = graphOf("mlp-small");
  graph.dynamicBatch = false;
  CHECK(withUnitRows(graph, graph.unitRows));
  CHECK(withUnitRows(graph, 3).error().id == "MP1022");
}
