//===- ModelsTest.cpp - strategies of whole models ------------------------===//
//
// On every graph of test/fixtures/graphs, and a GPT by hand: structures are
// well formed, every choice of every op is a legal column, backward ops inherit
// every choice, and nothing depends on the number of rows or on the run.
//
//===----------------------------------------------------------------------===//
#include "core/strategy/OpKinds.h"
#include "test/support/GptGraph.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

using namespace monarch;
using namespace monarch::test;

namespace {

struct Model {
  std::string name;
  Graph graph;
};

std::vector<Model> models() {
  std::vector<Model> result;
  result.push_back({"gpt by hand", gptGraph({})});
  std::vector<std::filesystem::path> files;
  if (std::filesystem::exists(MONARCH_GRAPHS))
    for (const auto &entry :
         std::filesystem::directory_iterator(MONARCH_GRAPHS))
      if (entry.path().extension() == ".json")
        files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const auto &file : files) {
    std::stringstream text;
    text << std::ifstream(file).rdbuf();
    Expected<Graph> graph = readGraph(text.str());
    INFO(file);
    REQUIRE(graph);
    result.push_back({file.filename(), std::move(*graph)});
  }
  return result;
}

OpId opCount(const Graph &graph) { return static_cast<OpId>(graph.ops.size()); }

void checkStructure(const DimStructure &dim, int64_t size) {
  REQUIRE(dim.size == size);
  int64_t position = 0;
  for (const Section &section : dim.sections) {
    REQUIRE(section.begin == position);
    int64_t product = 1;
    for (int64_t factor : section.factors) {
      REQUIRE(factor > 1);
      product *= factor;
    }
    position = section.end;
    REQUIRE(product == section.end - section.begin);
  }
  REQUIRE(position == size);
}

void checkState(const AxisState &state, const TensorStructure *structure) {
  if (!state.isSplit())
    return;
  REQUIRE(structure);
  REQUIRE(state.dim < static_cast<int>(structure->size()));
  const std::vector<Section> &sections = (*structure)[state.dim].sections;
  REQUIRE(state.factors.size() == sections.size());
  for (size_t s = 0; s < sections.size(); ++s) {
    REQUIRE(state.factors[s] >= 0);
    REQUIRE(state.factors[s] < static_cast<int>(sections[s].factors.size()));
  }
}

void checkColumn(const StrategySpace &space, OpId id, const Column &column) {
  const Op &op = space.graph().ops[id];
  auto structure = [&](ValueId value) {
    return value == None ? nullptr : &space.structure(value);
  };
  REQUIRE(column.operands.size() == op.operands.size());
  REQUIRE(column.results.size() == op.results.size());
  for (size_t i = 0; i < op.operands.size(); ++i)
    checkState(column.operands[i], structure(op.operands[i]));
  for (size_t i = 0; i < op.results.size(); ++i)
    checkState(column.results[i], structure(op.results[i]));
}

/// Factors of extents that are the rows of the unit are left open.
bool equalButRows(const DimStructure &a, const DimStructure &b) {
  if (a.sections.size() != b.sections.size())
    return false;
  for (size_t s = 0; s < a.sections.size(); ++s)
    if (a.sections[s].factors.size() != b.sections[s].factors.size())
      return false;
  return true;
}

} // namespace

TEST_CASE("sections and factors of a model are well formed") {
  for (const Model &model : models()) {
    INFO(model.name);
    StrategySpace space(model.graph);
    for (size_t id = 0; id < model.graph.values.size(); ++id) {
      const std::vector<int64_t> &shape = model.graph.values[id].shape;
      const TensorStructure &structure = space.structure(id);
      REQUIRE(structure.size() == shape.size());
      for (size_t dim = 0; dim < shape.size(); ++dim)
        checkStructure(structure[dim], shape[dim]);
      for (ValueId primal : model.graph.values[id].cotangentOf)
        REQUIRE(space.structure(primal) == structure);
    }
    for (const Parameter &parameter : model.graph.parameters)
      for (ValueId gradient : parameter.gradients)
        REQUIRE(space.structure(parameter.value) == space.structure(gradient));
  }
}

TEST_CASE("every choice of a model is a legal column of its own name") {
  for (const Model &model : models()) {
    INFO(model.name);
    StrategySpace space(model.graph);
    for (OpId id = 0; id < opCount(model.graph); ++id) {
      INFO("op " << id << " " << model.graph.ops[id].name);
      const std::vector<Choice> &choices = space.choices(id);
      REQUIRE(choices[0].name == "whole");
      std::set<std::string> names;
      for (size_t c = 0; c < choices.size(); ++c) {
        INFO(choices[c].name);
        REQUIRE(names.insert(choices[c].name).second);
        REQUIRE(space.findChoice(id, choices[c].name) == static_cast<int>(c));
        Column column = space.column(id, choices[c]);
        checkColumn(space, id, column);
        auto splits = [](const AxisState &state) { return state.isSplit(); };
        bool any =
            std::any_of(column.operands.begin(), column.operands.end(),
                        splits) ||
            std::any_of(column.results.begin(), column.results.end(), splits);
        REQUIRE(any == !choices[c].labels.empty());
      }
    }
  }
}

TEST_CASE("backward ops of a model inherit every choice") {
  for (const Model &model : models()) {
    StrategySpace space(model.graph);
    OpKinds kinds(model.graph);
    int carried = 0, nothing = 0, exceptions = 0;
    for (OpId id = 0; id < opCount(model.graph); ++id) {
      std::vector<OpId> ops{id};
      for (OpId backward : space.backwardOps(id))
        ops.push_back(backward);
      const LabelGroup &group = kinds.group(ops);
      for (const Choice &choice : space.choices(id)) {
        std::vector<int> labels;
        for (const SlotLabel &label : choice.labels)
          labels.push_back(kinds.kind(id).find(label));
        for (size_t member = 1; member < ops.size(); ++member) {
          std::vector<int> closure = group.closure(labels, member);
          if (!isLegalSplit(group.kind(member), closure)) {
            UNSCOPED_INFO(model.graph.ops[id].name
                          << " " << choice.name << " to "
                          << model.graph.ops[ops[member]].name);
            ++exceptions;
          }
          std::vector<SlotLabel> inherited =
              space.inherited(ops[member], choice);
          ++(inherited.empty() ? nothing : carried);
          checkColumn(space, ops[member],
                      space.column(ops[member], inherited, -1));
        }
      }
    }
    WARN(model.name << ": " << carried << " splits carried to backward ops, "
                    << nothing << " that do not concern them, " << exceptions
                    << " exceptions");
    CHECK(carried > 0);
    CHECK(exceptions == 0);
  }
}

TEST_CASE("strategies do not depend on the number of rows") {
  for (const Model &model : models()) {
    if (!model.graph.dynamicBatch)
      continue;
    INFO(model.name);
    // Primes that are no other size of the models.
    Expected<Graph> few = withUnitRows(model.graph, 11);
    Expected<Graph> many = withUnitRows(model.graph, 29);
    REQUIRE(few);
    REQUIRE(many);
    StrategySpace a(*few), b(*many), own(model.graph);
    for (size_t id = 0; id < model.graph.values.size(); ++id)
      for (size_t dim = 0; dim < few->values[id].shape.size(); ++dim) {
        INFO("value " << id << " dim " << dim);
        REQUIRE(equalButRows(a.structure(id)[dim], b.structure(id)[dim]));
        if (model.graph.unitRows > 1)
          REQUIRE(equalButRows(a.structure(id)[dim], own.structure(id)[dim]));
      }
    for (OpId id = 0; id < opCount(model.graph); ++id) {
      std::vector<std::string> names[2];
      for (const Choice &choice : a.choices(id))
        names[0].push_back(choice.name);
      for (const Choice &choice : b.choices(id))
        names[1].push_back(choice.name);
      REQUIRE(names[0] == names[1]);
    }
  }
}

TEST_CASE("strategies are the same in every run") {
  for (const Model &model : models()) {
    INFO(model.name);
    Graph copy = model.graph;
    StrategySpace a(model.graph), b(copy);
    for (size_t id = 0; id < copy.values.size(); ++id)
      REQUIRE(a.structure(id) == b.structure(id));
    for (OpId id = 0; id < opCount(copy); ++id) {
      REQUIRE(a.choices(id).size() == b.choices(id).size());
      for (size_t c = 0; c < a.choices(id).size(); ++c) {
        REQUIRE(a.choices(id)[c].name == b.choices(id)[c].name);
        REQUIRE(a.choices(id)[c].labels == b.choices(id)[c].labels);
        REQUIRE(a.choices(id)[c].linearGroup == b.choices(id)[c].linearGroup);
      }
    }
  }
}

TEST_CASE("every op of a model has a rule") {
  for (const Model &model : models()) {
    INFO(model.name);
    CHECK(StrategySpace(model.graph).opsWithoutRule() ==
          std::map<std::string, int>{});
  }
}
