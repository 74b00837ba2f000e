//===- UserRulesTest.cpp - monarch.rules/1 --------------------------------===//
//
// What a rule file makes of an op, and the files that are refused.
//
//===----------------------------------------------------------------------===//
#include "core/registry/UserRules.h"
#include "test/support/GraphBuilder.h"

#include <catch2/catch.hpp>

using namespace monarch;
using namespace monarch::test;

namespace {

constexpr const char *Product = R"({
  "schema": "monarch.rules/1",
  "ops": {"mylib::product": {"operands": ["n d", "f d"], "results": ["n f"],
          "partial": ["d"], "linear": [[0], [1]], "flops": "2 n d f"}}})";

Graph productOf(std::vector<int64_t> x, std::vector<int64_t> w,
                std::vector<int64_t> y) {
  GraphBuilder b;
  ValueId left = b.parameter("x", x), right = b.parameter("w", w);
  b.op("mylib::product", {left, right}, {OperandArg{0}, OperandArg{1}}, y);
  return b.finish();
}

} // namespace

TEST_CASE("a rule file says how an op is split") {
  Graph graph = productOf({4, 6}, {5, 6}, {4, 5});
  REQUIRE_FALSE(ruleOf(graph, graph.ops[0]));
  REQUIRE_FALSE(addUserRules(Product, "rules.json"));
  CHECK_FALSE(checkUserRules(graph));
  auto rule = ruleOf(graph, graph.ops[0]);
  REQUIRE(rule);
  CHECK(rule->operands[1][0].name == "f");
  CHECK(rule->effects.at("d").results == std::vector{AxisStateKind::Partial});
  CHECK(rule->linear.size() == 2);
  CHECK(callCost("mylib::product",
                 {{DType::Float32, {4, 6}}, {DType::Float32, {5, 6}}},
                 {{DType::Float32, {4, 5}}})
            .flops == 2 * 4 * 6 * 5);
  // The same rule on shapes that it is not for: whole, and named.
  Graph other = productOf({4, 6}, {5, 7}, {4, 5});
  CHECK_FALSE(ruleOf(other, other.ops[0]));
  REQUIRE(checkUserRules(other));
  CHECK(checkUserRules(other)->id == "MP1051");
  CHECK(checkUserRules(other)->what.find("'d' is 6 and 7") !=
        std::string::npos);
  REQUIRE_FALSE(
      addUserRules(R"({"schema": "monarch.rules/1", "ops": {}})", ""));
  CHECK_FALSE(ruleOf(graph, graph.ops[0]));
}

TEST_CASE("a rule file with a mistake is refused") {
  auto file = [](const std::string &rule, const std::string &op = "mylib::f",
                 const std::string &schema = "monarch.rules/1") {
    return "{\"schema\": \"" + schema + "\", \"ops\": {\"" + op +
           "\": " + rule + "}}";
  };
  const std::string good = R"({"operands": ["a b"], "results": ["a"]})";
  REQUIRE_FALSE(addUserRules(file(good), "rules.json"));
  for (const std::string &text :
       {std::string("{"), std::string("[]"), file("{}"),
        file(good, "mylib::f", "monarch.rules/2"), file(good, "aten::mm"),
        file(R"({"operands": ["a a"], "results": ["a"]})"),
        file(R"({"operands": ["a"], "results": ["a"], "partial": ["a"]})"),
        file(R"({"operands": ["a"], "results": ["a"], "partial": ["b"]})"),
        file(R"({"operands": ["a"], "results": ["a"], "linear": [[1]]})"),
        file(R"({"operands": ["a"], "results": ["a"], "flops": "2 q"})"),
        file(R"({"operands": ["a"], "results": ["a"], "speed": 1})")}) {
    CAPTURE(text);
    auto error = addUserRules(text, "rules.json");
    REQUIRE(error);
    CHECK(error->code == ExitCode::BadInput);
    CHECK(error->where.find("rules.json") != std::string::npos);
  }
  REQUIRE_FALSE(
      addUserRules(R"({"schema": "monarch.rules/1", "ops": {}})", ""));
}
