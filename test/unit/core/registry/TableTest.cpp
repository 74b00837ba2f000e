//===- TableTest.cpp - the columns that each op must offer ----------------===//
//
// One row an op: states of operands and results on one axis, R, P or S with the
// dim. An op offers at least these, and passes partial sums in no other way.
// Which columns are right is tested against LibTorch; this table keeps ops from
// losing any.
//
//===----------------------------------------------------------------------===//
#include "core/strategy/Strategies.h"
#include "test/support/GraphBuilder.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

using namespace monarch;
using monarch::test::GraphBuilder;

namespace {

using Shape = GraphBuilder::Shape;

std::string textOf(const AxisState &state) {
  if (state.isSplit())
    return "S" + std::to_string(state.dim);
  return state.isPartial() ? "P" : "R";
}

/// Results that have no value are left out.
std::string textOf(const Column &column, size_t results) {
  std::string text;
  for (const AxisState &state : column.operands)
    text += textOf(state) + " ";
  text += "->";
  for (size_t k = 0; k < results; ++k)
    text += " " + textOf(column.results[k]);
  return text;
}

bool takesPartial(const std::string &column) {
  return column.substr(0, column.find("->")).find('P') != std::string::npos;
}

/// Args of an op whose first arguments are its operands.
std::vector<Arg> args(int operands, std::vector<Arg> rest = {}) {
  std::vector<Arg> all;
  for (int k = 0; k < operands; ++k)
    all.push_back(OperandArg{k});
  all.insert(all.end(), rest.begin(), rest.end());
  return all;
}

struct Row {
  std::string name;
  std::vector<Shape> operands;
  std::vector<Arg> args;
  std::vector<Shape> results;
  std::vector<std::string> columns;
  /// Results of no value after the others.
  int absent = 0;
};

void check(const Row &row) {
  GraphBuilder b;
  std::vector<ValueId> operands;
  for (const Shape &shape : row.operands)
    operands.push_back(
        b.constant("c" + std::to_string(operands.size()), shape));
  std::vector<std::optional<Shape>> results(row.results.begin(),
                                            row.results.end());
  results.resize(results.size() + row.absent);
  b.ops(row.name, operands, row.args, results);
  Graph graph = b.finish();
  StrategySpace space(graph);
  std::set<std::string> offered;
  for (const Choice &choice : space.choices(0))
    offered.insert(textOf(space.column(0, choice), row.results.size()));
  INFO(row.name);
  for (const std::string &column : row.columns) {
    INFO(column);
    CHECK(offered.count(column) == 1);
  }
  for (const std::string &column : offered) {
    INFO(column);
    if (takesPartial(column))
      CHECK(std::count(row.columns.begin(), row.columns.end(), column) == 1);
  }
}

/// A row for each of several ops that are alike.
void check(const std::vector<std::string> &names, Row row) {
  for (const std::string &name : names) {
    row.name = name;
    check(row);
  }
}

} // namespace

TEST_CASE("elementwise ops split every dim and pass what they are linear in",
          "[registry]") {
  const Shape x = {4, 6};
  check({"aten::tanh", "aten::rsqrt", "aten::cos", "aten::sin", "aten::silu",
         "aten::relu", "aten::exp", "aten::sigmoid"},
        {"", {x}, args(1), {x}, {"S0 -> S0", "S1 -> S1"}});
  check({"aten::gelu", "aten::pow.Tensor_Scalar"},
        {"", {x}, args(1, {2.0}), {x}, {"S0 -> S0", "S1 -> S1"}});
  check({"aten::neg", "aten::clone", "aten::_to_copy"},
        {"", {x}, args(1), {x}, {"S0 -> S0", "S1 -> S1", "P -> P"}});
  check({"aten::mul.Scalar", "aten::div.Scalar", "aten::mul.Tensor",
         "aten::div.Tensor"},
        {"", {x}, args(1, {2.0}), {x}, {"S0 -> S0", "S1 -> S1", "P -> P"}});
  check({"aten::add.Scalar", "aten::sub.Scalar", "aten::add.Tensor"},
        {"", {x}, args(1, {2.0}), {x}, {"S0 -> S0", "S1 -> S1"}});
  check({"aten::add.Tensor", "aten::sub.Tensor"},
        {"",
         {x, {6}},
         args(2, {int64_t(1)}),
         {x},
         {"S0 R -> S0", "S1 S0 -> S1", "P P -> P"}});
  check({"aten::mul.Tensor"},
        {"",
         {x, {4, 1}},
         args(2),
         {x},
         {"S0 S0 -> S0", "S1 R -> S1", "P R -> P", "R P -> P"}});
  check({"aten::div.Tensor", "aten::gelu_backward", "aten::silu_backward",
         "aten::tanh_backward", "aten::threshold_backward"},
        {"", {x, x}, args(2), {x}, {"S0 S0 -> S0", "S1 S1 -> S1", "P R -> P"}});
}

TEST_CASE("products leave partial sums when k is split", "[registry]") {
  check({"aten::mm",
         {{4, 6}, {6, 8}},
         args(2),
         {{4, 8}},
         {"S0 R -> S0", "R S1 -> S1", "S1 S0 -> P", "P R -> P", "R P -> P"}});
  check({"aten::bmm",
         {{3, 4, 6}, {3, 6, 8}},
         args(2),
         {{3, 4, 8}},
         {"S0 S0 -> S0", "S1 R -> S1", "R S2 -> S2", "S2 S1 -> P", "P R -> P",
          "R P -> P"}});
  check({"aten::addmm",
         {{8}, {4, 6}, {6, 8}},
         args(3, {int64_t(1), int64_t(1)}),
         {{4, 8}},
         {"R S0 R -> S0", "S0 R S1 -> S1", "P S1 S0 -> P", "P P R -> P",
          "P R P -> P"}});
}

TEST_CASE("views, transposes, expansions and sums map their dims",
          "[registry]") {
  check({"aten::t",
         {{4, 6}},
         args(1),
         {{6, 4}},
         {"S0 -> S1", "S1 -> S0", "P -> P"}});
  check({"aten::transpose.int",
         {{4, 6, 2}},
         args(1, {int64_t(0), int64_t(1)}),
         {{6, 4, 2}},
         {"S0 -> S1", "S1 -> S0", "S2 -> S2", "P -> P"}});
  check({"aten::permute",
         {{4, 6, 2}},
         args(1, {std::vector<int64_t>{2, 0, 1}}),
         {{2, 4, 6}},
         {"S0 -> S1", "S1 -> S2", "S2 -> S0", "P -> P"}});
  check({"aten::view", "aten::_unsafe_view", "aten::reshape"},
        {"",
         {{4, 6, 5}},
         args(1, {ResultSizes{0}}),
         {{24, 5}},
         {"S0 -> S0", "S1 -> S0", "S2 -> S1", "P -> P"}});
  check({"aten::unsqueeze",
         {{4, 6}},
         args(1, {int64_t(1)}),
         {{4, 1, 6}},
         {"S0 -> S0", "S1 -> S2", "P -> P"}});
  check({"aten::squeeze.dim",
         {{4, 1, 6}},
         args(1, {int64_t(1)}),
         {{4, 6}},
         {"S0 -> S0", "S2 -> S1", "P -> P"}});
  check({"aten::expand",
         {{4, 1}},
         args(1, {ResultSizes{0}, false}),
         {{3, 4, 6}},
         {"R -> S0", "S0 -> S1", "R -> S2", "P -> P"}});
  check({"aten::sum.dim_IntList", "aten::mean.dim"},
        {"",
         {{4, 6}},
         args(1, {std::vector<int64_t>{1}, false, {}}),
         {{4}},
         {"S0 -> S0", "S1 -> P", "P -> P"}});
  check({"aten::sum", "aten::mean"},
        {"", {{4, 6}}, args(1, {{}}), {{}}, {"S0 -> P", "S1 -> P", "P -> P"}});
}

TEST_CASE("pieces of a dim are split together", "[registry]") {
  check({"aten::split.Tensor",
         {{6, 5}},
         args(1, {int64_t(3), int64_t(0)}),
         {{3, 5}, {3, 5}},
         {"S0 -> S0 S0", "S1 -> S1 S1", "P -> P P"}});
  check({"aten::split_with_sizes",
         {{6, 5}},
         args(1, {ResultsSizes{0}, int64_t(0)}),
         {{4, 5}, {2, 5}},
         {"S0 -> S0 S0", "S1 -> S1 S1", "P -> P P"}});
  check({"aten::unbind.int",
         {{4, 2, 5}},
         args(1, {int64_t(1)}),
         {{4, 5}, {4, 5}},
         {"S0 -> S0 S0", "S2 -> S1 S1", "P -> P P"}});
  check({"aten::slice.Tensor",
         {{6, 5}},
         args(1, {int64_t(0), int64_t(2), int64_t(6), int64_t(1)}),
         {{4, 5}},
         {"S0 -> S0", "S1 -> S1", "P -> P"}});
  check({"aten::slice_backward",
         {{4, 5}},
         args(1,
              {ResultSizes{0}, int64_t(0), int64_t(2), int64_t(6), int64_t(1)}),
         {{6, 5}},
         {"S0 -> S0", "S1 -> S1", "P -> P"}});
  check({"aten::cat",
         {{4, 5}, {2, 5}},
         {OperandListArg{{0, 1}}, int64_t(0)},
         {{6, 5}},
         {"S0 S0 -> S0", "S1 S1 -> S1", "P P -> P"}});
}

TEST_CASE("tables split by vocabulary", "[registry]") {
  check({"aten::embedding",
         {{7, 6}, {4, 3}},
         args(2, {int64_t(-1), false, false}),
         {{4, 3, 6}},
         {"R S0 -> S0", "R S1 -> S1", "S1 R -> S2", "S0 R -> P", "P R -> P"}});
  check({"aten::embedding_dense_backward",
         {{4, 3, 6}, {4, 3}},
         args(2, {ResultSize{0, 0}, int64_t(-1), false}),
         {{7, 6}},
         {"S0 S0 -> P", "S1 S1 -> P", "S2 R -> S1", "R R -> S0", "P R -> P"}});
  check({"aten::index.Tensor",
         {{7, 6}, {4}},
         {OperandArg{0}, OperandListArg{{1}}},
         {{4, 6}},
         {"S1 R -> S1", "R S0 -> S0", "P R -> P"}});
  check({"aten::arange", {}, {ResultSize{0, 0}}, {{6}}, {"-> S0"}});
}

TEST_CASE("normalisations split rows and, by a body, what they normalise",
          "[registry]") {
  const Shape x = {4, 6}, statistics = {4, 1}, w = {6};
  check({"aten::native_layer_norm",
         {x, w, w},
         {OperandArg{0}, w, OperandArg{1}, OperandArg{2}, 1e-5},
         {x, statistics, statistics},
         {"S0 R R -> S0 S0 S0", "S1 S0 S0 -> S1 R R"}});
  check({"aten::native_layer_norm_backward",
         {x, x, statistics, statistics, w, w},
         {OperandArg{0}, OperandArg{1}, w, OperandArg{2}, OperandArg{3},
          OperandArg{4}, OperandArg{5}, std::vector<bool>{true, true, true}},
         {x, w, w},
         {"S0 S0 S0 S0 R R -> S0 P P", "S1 S1 R R S0 S0 -> S1 S0 S0",
          "P R R R R R -> P P P"}});
  check({"aten::_softmax", "aten::_log_softmax"},
        {"", {x}, args(1, {int64_t(1), false}), {x}, {"S0 -> S0", "S1 -> S1"}});
  check({"aten::_softmax_backward_data", "aten::_log_softmax_backward_data"},
        {"",
         {x, x},
         args(2, {int64_t(1), DType::Float64}),
         {x},
         {"S0 S0 -> S0", "S1 S1 -> S1", "P R -> P"}});
}

TEST_CASE("cross-entropy splits rows and vocabulary", "[registry]") {
  check({"aten::nll_loss_forward",
         {{4, 7}, {4}},
         args(2, {{}, int64_t(2), int64_t(-100)}),
         {{}, {}},
         {"S0 S0 -> P P", "S1 R -> P P", "P R -> P R"}});
  check({"aten::nll_loss_backward",
         {{}, {4, 7}, {4}, {}},
         {OperandArg{0}, OperandArg{1}, OperandArg{2}, std::monostate(),
          int64_t(2), int64_t(-100), OperandArg{3}},
         {{4, 7}},
         {"R S0 S0 R -> S0", "R S1 R R -> S1", "P R R R -> P"}});
}

TEST_CASE("attention splits batch, heads, queries, keys and widths",
          "[registry]") {
  const Shape q = {2, 4, 5, 3}, k = {2, 4, 6, 3}, v = {2, 4, 6, 7};
  const Shape out = {2, 4, 5, 7}, rows = {2, 4, 5};
  check({"monarch::attention",
         {q, k, v, {5, 6}},
         args(4, {false, 1.0}),
         {out, rows},
         {"S0 S0 S0 R -> S0 S0", "S1 S1 S1 R -> S1 S1", "S2 R R S0 -> S2 S2",
          "R R S3 R -> S3 R", "R S2 S2 S1 -> P R", "S3 S3 R R -> R R",
          "R R P R -> P R"}});
  check({"monarch::attention_backward",
         {out, q, k, v, out, rows},
         {OperandArg{0}, OperandArg{1}, OperandArg{2}, OperandArg{3},
          std::monostate(), OperandArg{4}, OperandArg{5}, false, 1.0,
          std::vector<bool>{true, true, true, false}},
         {q, k, v},
         {"S0 S0 S0 S0 S0 S0 -> S0 S0 S0", "S1 S1 S1 S1 S1 S1 -> S1 S1 S1",
          "S2 S2 R R S2 S2 -> S2 P P", "R R S2 S2 R R -> P S2 S2",
          "S3 R R S3 S3 R -> R R S3", "R S3 S3 R R R -> S3 S3 R",
          "P R R R R R -> P P P"},
         1});
}
