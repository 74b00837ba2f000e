//===- ScriptFileTest.cpp - what is refused, what is held -----------------===//
//
// Nodes against the lists, by their text; files that LibTorch writes here.
//
//===----------------------------------------------------------------------===//
#include "runtime/data/FileSources.h"
#include "runtime/script/CheckScript.h"
#include "test/support/TemporaryFolder.h"

#include <ATen/ops/arange.h>
#include <catch2/catch.hpp>

using namespace monarch;
using namespace monarch::test;

namespace {

/// Refusals of the nodes of `def f(...)` as TorchScript source.
std::vector<std::string> refusalsOf(const std::string &source) {
  torch::jit::Module module("M");
  module.define(source);
  std::vector<std::string> refusals;
  for (const torch::jit::Node *node :
       module.get_method("f").graph()->block()->nodes())
    if (std::string what = refusalOf(*node); !what.empty())
      refusals.push_back(std::move(what));
  return refusals;
}

torch::jit::Module tiedModule() {
  torch::jit::Module inner("Inner");
  const at::Tensor weight =
      at::arange(12, at::TensorOptions(at::kFloat)).reshape({3, 4});
  inner.register_parameter("weight", weight, /*is_buffer=*/false);
  torch::jit::Module module("M");
  module.register_module("head", inner);
  module.register_parameter("tokens", weight, /*is_buffer=*/false);
  module.register_buffer("seen", at::arange(2, at::TensorOptions(at::kLong)));
  module.define("def forward(self, x):\n  return x + self.tokens.sum()\n");
  return module;
}

std::shared_ptr<const ScriptFile> opened(const std::string &path) {
  auto script = ScriptFile::open(path);
  REQUIRE((script ? "" : toString(script.error())) == "");
  return *script;
}

} // namespace

TEST_CASE("Ops on tensors and moves of values are allowed", "[script]") {
  CHECK(refusalsOf("def f(self, x):\n"
                   "  y = [x, x]\n"
                   "  for i in range(3):\n"
                   "    y.append(torch.relu(x) * i)\n"
                   "  return torch.stack(y), x.dtype, len(y)\n")
            .empty());
}

TEST_CASE("Ops that reach beyond their tensors are refused", "[script]") {
  CHECK(refusalsOf("def f(self, x):\n"
                   "  torch.save(x, 'a')\n"
                   "  return torch.from_file('a', size=3)\n") ==
        std::vector<std::string>{"aten::save", "aten::from_file"});
  CHECK(refusalsOf("def f(self, x):\n"
                   "  print(x)\n"
                   "  torch.manual_seed(1)\n"
                   "  return x\n") ==
        std::vector<std::string>{"prim::Print", "aten::manual_seed"});
}

TEST_CASE("A script's tensors have their paths, ties one entry", "[script]") {
  TemporaryFolder folder;
  const std::string path = folder / "m.pt";
  tiedModule().save(path);
  const auto script = opened(path);
  REQUIRE(script->tensors().size() == 2);
  const ScriptTensor &weight = script->tensors()[0];
  CHECK(weight.names.size() == 2);
  CHECK(weight.kind == ValueKind::Parameter);
  CHECK(weight.storage.record.starts_with("data/"));
  CHECK(weight.storage.strides == std::vector<int64_t>{4, 1});
  CHECK(weight.tensor.sum().item<float>() == 66);
  CHECK(script->tensors()[1].kind == ValueKind::Buffer);
  CHECK(script->weightBytes() == 12 * 4 + 2 * 8);
}

TEST_CASE("A script's weights are read by any of their names", "[script]") {
  TemporaryFolder folder;
  const std::string path = folder / "any name";
  tiedModule().save(path);
  auto weights = runtime::openWeights(path);
  REQUIRE(weights);
  const Storage anywhere;
  const auto read = [&](const std::string &name, std::vector<int64_t> shape) {
    const std::vector<std::string> names = {name};
    return (*weights)->read(
        {names, anywhere, DType::Float64, std::move(shape)});
  };
  for (const char *name : {"tokens", "head.weight"}) {
    auto tensor = read(name, {3, 4});
    REQUIRE((tensor ? "" : toString(tensor.error())) == "");
    CHECK(tensor->scalar_type() == at::kDouble);
    CHECK(tensor->sum().item<double>() == 66);
  }
  CHECK(!read("tokens", {4, 3}));
  CHECK(!read("body.weight", {3, 4}));
}
