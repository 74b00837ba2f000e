//===- StrategiesTest.cpp - every strategy equals the unsplit op ----------===//
//
// For each registered op, each sample, each choice: operands are cut by the
// column's layouts, the local instructions of all ranks run in lockstep, and
// the results are put together and compared in float64. On one axis of 2 and of
// 3 ranks, and on 2 x 2 for pairs of choices; with even tables, with an empty
// first or last block, and with random tables.
//
//===----------------------------------------------------------------------===//
#include "core/strategy/Strategies.h"
#include "core/registry/Lowering.h"
#include "runtime/ops/Ops.h"
#include "test/strategies/Ranks.h"
#include "test/strategies/Samples.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <iostream>

using namespace monarch;
using namespace monarch::test;

namespace {

constexpr double Tolerance = 1e-12;
constexpr uint64_t Seed = 20251;
/// Pairs of choices that run on two axes, at most, for each sample.
constexpr size_t MaxPairs = 12;

Mesh meshOf(std::vector<int64_t> sizes) {
  Mesh mesh;
  for (size_t axis = 0; axis < sizes.size(); ++axis)
    mesh.axes.push_back({"t" + std::to_string(axis), sizes[axis]});
  return mesh;
}

enum class Cut { Even, EmptyFirst, EmptyLast, Random };

OffsetTables tablesFor(Cut cut, const Mesh &mesh, std::mt19937_64 &random) {
  OffsetTables tables;
  if (cut == Cut::Even)
    return tables;
  for (int64_t extent = 1; extent <= 16; ++extent)
    for (const MeshAxis &axis : mesh.axes) {
      std::vector<int64_t> offsets(axis.size + 1, 0);
      for (int64_t part = 1; part <= axis.size; ++part)
        offsets[part] = cut == Cut::EmptyFirst
                            ? extent * (part - 1) / (axis.size - 1)
                            : extent;
      if (cut == Cut::Random)
        for (int64_t part = 1; part < axis.size; ++part)
          offsets[part] = std::uniform_int_distribution<int64_t>(
              offsets[part - 1], extent)(random);
      tables.set(extent, axis.size, offsets);
    }
  return tables;
}

/// One op under one column per axis, as resolve would set it up.
class Trial {
public:
  Trial(const StrategySpace &space, const Sample &sample, const Mesh &mesh,
        const OffsetTables &tables, const std::vector<Choice> &choices,
        std::mt19937_64 &random)
      : space(space), sample(sample), op(sample.graph.op(sample.op)),
        mesh(mesh), tables(tables), random(random) {
    operands.resize(op.operands.size(), Layout::replicated(mesh.axes.size()));
    results.resize(op.results.size(), Layout::replicated(mesh.axes.size()));
    for (size_t axis = 0; axis < choices.size(); ++axis) {
      Column column = space.column(sample.op, choices[axis]);
      for (size_t k = 0; k < operands.size(); ++k)
        operands[k].states[axis] = column.operands[k];
      for (size_t k = 0; k < results.size(); ++k)
        results[k].states[axis] = column.results[k];
      labels.push_back(column.labels);
    }
    for (std::vector<Layout> *layouts : {&operands, &results})
      for (Layout &layout : *layouts)
        layout = canonical(layout);
  }

  /// The largest error over all results.
  double run() {
    Role role;
    RoleWriter writer(role);
    std::vector<Instruction> instructions;
    writer.target = &instructions;
    Lowering lowering{sample.graph, op, writer, mesh};
    lowering.labels = labels;
    lowering.operandLayout = operands;
    lowering.resultLayout = results;
    lowering.tables = knowsTables ? &tables : nullptr;
    static const TensorStructure none;
    for (ValueId value : op.operands)
      lowering.operandStructure.push_back(&space.structure(value));
    for (ValueId value : op.results)
      lowering.resultStructure.push_back(
          value == None ? &none : &space.structure(value));
    const OpRule &rule = *space.rule(sample.op);
    for (size_t k = 0; k < op.operands.size(); ++k) {
      const std::vector<int> &skipped = rule.shapeOnly;
      bool isRead =
          std::find(skipped.begin(), skipped.end(), k) == skipped.end();
      lowering.operands.push_back(
          isRead ? writer.make(sample.graph.value(op.operands[k]).type,
                               lowering.operandShape(static_cast<int>(k)))
                 : Local());
    }
    lower(rule, lowering);

    Ranks ranks(mesh, tables, role);
    for (size_t k = 0; k < op.operands.size(); ++k) {
      if (!lowering.operands[k].defined())
        continue;
      std::vector<at::Tensor> parts =
          cut(sample.tensors[op.operands[k]], space.structure(op.operands[k]),
              operands[k], mesh, tables, random);
      for (int64_t rank = 0; rank < mesh.size(); ++rank)
        ranks.tensors[rank][lowering.operands[k].value] =
            parts[rank].contiguous();
    }
    ranks.run(instructions);
    double largest = 0;
    for (size_t k = 0; k < op.results.size(); ++k) {
      if (op.results[k] == None)
        continue;
      std::vector<at::Tensor> parts;
      for (int64_t rank = 0; rank < mesh.size(); ++rank)
        parts.push_back(ranks.tensors[rank][lowering.results[k].value]);
      largest =
          std::max(largest, largestError(parts, sample.tensors[op.results[k]],
                                         space.structure(op.results[k]),
                                         results[k], mesh, tables));
    }
    return largest;
  }

  bool knowsTables = false;

private:
  const StrategySpace &space;
  const Sample &sample;
  const Op &op;
  const Mesh &mesh;
  const OffsetTables &tables;
  std::mt19937_64 &random;
  std::vector<Layout> operands, results;
  std::vector<std::vector<std::string>> labels;
};

struct Tally {
  int trials = 0;
  double largest = 0;
};

void runChoices(const StrategySpace &space, const Sample &sample,
                const Mesh &mesh, const std::vector<Choice> &choices,
                std::mt19937_64 &random, Tally &tally) {
  for (Cut cut : {Cut::Even, Cut::EmptyFirst, Cut::EmptyLast, Cut::Random}) {
    OffsetTables tables = tablesFor(cut, mesh, random);
    for (bool knowsTables : {false, true}) {
      std::string what = sample.graph.op(sample.op).name + " on " +
                         std::to_string(mesh.size()) + " ranks, cut " +
                         std::to_string(static_cast<int>(cut)) + ":";
      for (const Choice &choice : choices)
        what += " " + choice.name;
      INFO(what << ", seed " << Seed);
      double error = std::numeric_limits<double>::infinity();
      Trial trial(space, sample, mesh, tables, choices, random);
      trial.knowsTables = knowsTables;
      try {
        error = trial.run();
      } catch (const std::exception &thrown) {
        FAIL_CHECK(std::string(thrown.what()).substr(0, 600));
        continue;
      }
      CHECK(error <= Tolerance);
      ++tally.trials;
      tally.largest = std::max(tally.largest, error);
    }
  }
}

void testSample(const Sample &sample, Tally &tally) {
  std::mt19937_64 random(Seed);
  StrategySpace space(sample.graph);
  REQUIRE(space.rule(sample.op));
  const std::vector<Choice> &choices = space.choices(sample.op);
  for (int64_t ranks : {2, 3})
    for (const Choice &choice : choices)
      runChoices(space, sample, meshOf({ranks}), {choice}, random, tally);
  std::vector<std::vector<Choice>> pairs;
  for (const Choice &first : choices)
    for (const Choice &second : choices)
      if (first.name != "whole" && second.name != "whole")
        pairs.push_back({first, second});
  std::shuffle(pairs.begin(), pairs.end(), random);
  if (pairs.size() > MaxPairs)
    pairs.resize(MaxPairs);
  for (const std::vector<Choice> &pair : pairs)
    runChoices(space, sample, meshOf({2, 2}), pair, random, tally);
}

} // namespace

TEST_CASE("every registered op has samples and every sample is of its op",
          "[strategies]") {
  registerOps();
  std::vector<std::string> sampled;
  for (const auto &[name, make] : sampleTable()) {
    sampled.push_back(name);
    for (const Sample &sample : make(Seed))
      CHECK(sample.graph.op(sample.op).name == name);
  }
  CHECK(sampled == registeredOps());
}

TEST_CASE("every strategy equals the unsplit op", "[strategies]") {
  registerOps();
  Tally all;
  for (const auto &[name, make] : sampleTable()) {
    Tally tally;
    for (const Sample &sample : make(Seed))
      testSample(sample, tally);
    CHECK(tally.trials > 0);
    all.trials += tally.trials;
    all.largest = std::max(all.largest, tally.largest);
  }
  std::cout << all.trials << " trials, largest error " << all.largest
            << ", seed " << Seed << "\n";
}
