//===- ShortenRepeatsTest.cpp - which programs have equal blocks ----------===//
//
// A chain of layers, each a product with a weight of its own and an activation.
// What the graph of a shortened program becomes is tested on exported models
// (test/replay/repeats_test.py).
//
//===----------------------------------------------------------------------===//
#include "compiler/import/RepeatedNodes.h"

#include <catch2/catch.hpp>

using namespace monarch;

namespace {

constexpr size_t Layers = 9;

std::string number(const char *name, size_t i) {
  return name + std::to_string(i);
}

class Chain {
public:
  Chain() {
    addLeaf(ValueKind::Input, "x");
    addNode("torch.ops.aten.tanh.default", {"x"}, "embedded");
    std::string last = "embedded";
    for (size_t i = 0; i < Layers; ++i) {
      addLeaf(ValueKind::Parameter, number("weight", i));
      addNode("torch.ops.aten.mm.default", {last, number("weight", i)},
              number("product", i));
      addNode("torch.ops.aten.relu.default", {number("product", i)},
              number("active", i));
      last = number("active", i);
    }
    addNode("torch.ops.aten.sum.default", {last}, "loss");
    program.graph.outputs.push_back(TensorName{"loss"});
    program.outputNames = {""};
  }

  void addLeaf(ValueKind kind, const std::string &name) {
    ExportedLeaf leaf;
    leaf.kind = kind;
    leaf.names = leaf.placeholders = {name};
    leaf.trainable = kind == ValueKind::Parameter;
    program.leaves.push_back(leaf);
    addTensor(name);
  }
  void addTensor(const std::string &name) {
    program.graph.tensors[name] = {DType::Float32, {{4, {}}, {4, {}}}, false};
  }
  void addNode(const std::string &target,
               const std::vector<std::string> &operands,
               const std::string &result) {
    ExportedNode node;
    node.target = target;
    for (size_t i = 0; i < operands.size(); ++i)
      node.inputs.push_back({number("operand", i), TensorName{operands[i]}});
    node.outputs.push_back(TensorName{result});
    program.graph.nodes.push_back(node);
    addTensor(result);
  }
  /// Node 0 is before the layers, each of which has two.
  ExportedNode &node(size_t layer, size_t offset) {
    return program.graph.nodes[1 + 2 * layer + offset];
  }
  void setOperand(ExportedNode &node, size_t operand, std::string name) {
    node.inputs[operand].second = TensorName{std::move(name)};
  }

  ExportedProgram program;
};

} // namespace

TEST_CASE("Four of equal blocks are left, the last reading the third") {
  const Chain chain;
  const auto shortened = shortenRepeats(chain.program);
  REQUIRE(shortened);
  CHECK(shortened->begin == 1);
  CHECK(shortened->period == 2);
  CHECK(shortened->count == Layers);
  const ExportedProgram &program = shortened->program;
  REQUIRE(program.graph.nodes.size() == 1 + 2 * 4 + 1);
  CHECK(program.leaves.size() == 1 + 4);
  const auto operand = [&](size_t node, size_t input) {
    return std::get<TensorName>(program.graph.nodes[node].inputs[input].second)
        .name;
  };
  CHECK(operand(7, 0) == "active2");
  CHECK(operand(7, 1) == number("weight", Layers - 1));
  CHECK(operand(9, 0) == number("active", Layers - 1));
  for (size_t node = 0; node < 7; ++node)
    CHECK(nodeOfTag(program.graph.nodes[node].source) ==
          static_cast<int>(node));
  CHECK(nodeOfTag(program.graph.nodes[7].source) ==
        static_cast<int>(1 + 2 * (Layers - 1)));
  for (size_t i = 0; i < Layers; ++i) {
    CHECK(shortened->leaves[1 + i].slot == 0);
    CHECK(shortened->leaves[1 + i].block == static_cast<int>(i));
  }
  CHECK(shortened->leaves[0].slot == None);
}

TEST_CASE("What all blocks read is no block's") {
  Chain chain;
  chain.addLeaf(ValueKind::Buffer, "mask");
  for (size_t i = 0; i < Layers; ++i)
    chain.node(i, 1).inputs.push_back({"mask", TensorName{"mask"}});
  const auto shortened = shortenRepeats(chain.program);
  REQUIRE(shortened);
  CHECK(shortened->leaves.back().slot == None);
}

TEST_CASE("Blocks that are not equal are all captured") {
  Chain chain;
  SECTION("a weight of two blocks") {
    chain.setOperand(chain.node(4, 0), 1, "weight3");
  }
  SECTION("a weight that is also read elsewhere") {
    chain.setOperand(chain.program.graph.nodes.front(), 0, "weight3");
  }
  SECTION("a block that reads the one before the last") {
    chain.setOperand(chain.node(4, 0), 0, "active2");
  }
  SECTION("a result of a block in the middle") {
    chain.program.graph.outputs.push_back(TensorName{"active4"});
  }
  SECTION("a block that is read at the end") {
    chain.setOperand(chain.program.graph.nodes.back(), 0, "active4");
  }
  SECTION("a weight of another shape") {
    chain.program.graph.tensors["weight4"].sizes[1].hint = 5;
  }
  SECTION("too few of a kind in a row") {
    chain.node(4, 1).target = "torch.ops.aten.gelu.default";
  }
  CHECK_FALSE(shortenRepeats(chain.program));
}

TEST_CASE("An odd block splits the run: the longer part is shortened") {
  Chain chain;
  chain.node(1, 1).target = "torch.ops.aten.gelu.default";
  const auto shortened = shortenRepeats(chain.program);
  REQUIRE(shortened);
  CHECK(shortened->begin >= 3);
  CHECK(shortened->count >= Layers - 3);
}
