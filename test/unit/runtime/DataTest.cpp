//===- DataTest.cpp - where weights and batches come from -----------------===//
//
// Generators do not depend on the unit's size, files give what was written, and
// what does not fit is refused by name.
//
//===----------------------------------------------------------------------===//
#include "runtime/data/FileSources.h"
#include "runtime/data/Generators.h"
#include "test/support/TemporaryFolder.h"
#include "test/support/ZipBytes.h"
#include "test/unit/runtime/TensorFiles.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>
#include <catch2/catch.hpp>

#include <cmath>
#include <fstream>
#include <limits>

using namespace monarch;
using namespace monarch::runtime;
using namespace monarch::test;

namespace {

ProgramInput inputOf(std::string name, std::vector<int64_t> shape, int rowDim,
                     int64_t bound = 0) {
  ProgramInput input;
  input.name = std::move(name);
  for (int64_t size : shape)
    input.structure.push_back(plainDim(size));
  input.rowDim = rowDim;
  input.bound = bound;
  return input;
}

/// All rows of one step, read in units of `rows`.
at::Tensor readStep(BatchSource &source, const std::string &name,
                    std::vector<int64_t> shape, int rowDim, DType type,
                    int64_t bound, int64_t rows, int64_t step) {
  int64_t units = shape[rowDim] / rows;
  shape[rowDim] = rows;
  ProgramInput input = inputOf(name, shape, rowDim, bound);
  std::vector<at::Tensor> parts;
  for (int64_t unit = 0; unit < units; ++unit) {
    auto part = source.read({input, type, shape, step, unit, units});
    REQUIRE((part ? "" : toString(part.error())) == "");
    parts.push_back(*part);
  }
  return at::cat(parts, rowDim);
}

Expected<at::Tensor> readWeight(WeightSource &source,
                                std::vector<std::string> names, DType type,
                                std::vector<int64_t> shape,
                                bool isParameter = true) {
  Storage storage;
  return source.read({names, storage, type, std::move(shape), isParameter});
}

} // namespace

TEST_CASE("Synthetic rows are the same in units of any size") {
  SyntheticBatches source(7);
  auto [shape, rowDim] = GENERATE(
      table<std::vector<int64_t>, int>({{{12, 3}, 0}, {{3, 12, 2}, 1}}));
  for (DType type : {DType::Int64, DType::Float32}) {
    at::Tensor whole = readStep(source, "x", shape, rowDim, type, 50, 12, 1);
    for (int64_t rows : {1, 4})
      CHECK(
          whole.equal(readStep(source, "x", shape, rowDim, type, 50, rows, 1)));
    CHECK(!whole.equal(readStep(source, "x", shape, rowDim, type, 50, 12, 2)));
    CHECK(!whole.equal(readStep(source, "y", shape, rowDim, type, 50, 12, 1)));
    SyntheticBatches other(8);
    CHECK(!whole.equal(readStep(other, "x", shape, rowDim, type, 50, 12, 1)));
  }
}

TEST_CASE("Synthetic numbers have the range that they should") {
  SyntheticBatches source(1);
  at::Tensor integers =
      readStep(source, "ids", {4000}, 0, DType::Int64, 10, 4000, 0);
  CHECK(integers.min().item().toLong() == 0);
  CHECK(integers.max().item().toLong() == 9);
  at::Tensor ones = readStep(source, "mask", {8}, 0, DType::Int64, 0, 8, 0);
  CHECK((ones == 1).all().item().toBool());
  at::Tensor floats =
      readStep(source, "x", {4000}, 0, DType::Float64, 0, 4000, 0);
  CHECK(std::abs(floats.mean().item().toDouble()) < 0.1);
  CHECK(floats.std().item().toDouble() == Approx(1).margin(0.1));
}

TEST_CASE("Fresh weights depend on seed and name alone") {
  InitialWeights source(3, nullptr), other(4, nullptr);
  auto weight = readWeight(source, {"a.weight"}, DType::Float32, {40, 50});
  REQUIRE(weight);
  CHECK(weight->std().item().toDouble() == Approx(0.02).margin(0.002));
  CHECK(weight->equal(
      *readWeight(source, {"a.weight", "tied"}, DType::Float32, {40, 50})));
  CHECK(!weight->equal(
      *readWeight(source, {"b.weight"}, DType::Float32, {40, 50})));
  CHECK(!weight->equal(
      *readWeight(other, {"a.weight"}, DType::Float32, {40, 50})));
  CHECK((*readWeight(source, {"ln.weight"}, DType::Float32, {8}) == 1)
            .all()
            .item()
            .toBool());
  CHECK((*readWeight(source, {"ln.bias"}, DType::Float32, {8}) == 0)
            .all()
            .item()
            .toBool());
  CHECK(
      readWeight(source, {"inv_freq"}, DType::Float32, {8}, false).error().id ==
      "MP4010");
}

TEST_CASE("Weights are found by any name, in a file or a folder") {
  TemporaryFolder folder;
  at::Tensor a = at::arange(6, at::TensorOptions(at::kFloat)).view({2, 3});
  at::Tensor b = at::arange(4, at::TensorOptions(at::kDouble));
  writeTensors(folder / "1.safetensors", {{"a", a}});
  writeTensors(folder / "2.safetensors", {{"b", b}});
  auto source = openWeights(folder / "");
  REQUIRE(source);
  CHECK(readWeight(**source, {"tied", "a"}, DType::Float32, {2, 3})->equal(a));
  CHECK(readWeight(**source, {"a"}, DType::Float64, {2, 3})
            ->equal(a.to(at::kDouble)));
  CHECK(readWeight(**source, {"b"}, DType::Float32, {4})
            ->equal(b.to(at::kFloat)));
  CHECK(readWeight(**source, {"c"}, DType::Float32, {4}).error().id ==
        "MP4010");
  CHECK(readWeight(**source, {"b"}, DType::Float32, {2, 2})
            .error()
            .what.find("wants float32 [2, 2]") != std::string::npos);
  CHECK(!readWeight(**source, {"b"}, DType::Int64, {4}));
  CHECK(!openWeights(folder / "missing.safetensors"));
}

TEST_CASE("Batches are cut out of the file by step and unit") {
  TemporaryFolder folder;
  at::Tensor x = at::arange(24 * 3, at::TensorOptions(at::kLong)).view({24, 3});
  writeTensors(folder / "d.safetensors",
               {{"x", x}, {"columns", x.t().contiguous()}, {"table", x}});
  auto source = FileBatches::open(folder / "d.safetensors");
  REQUIRE(source);
  // Steps of 8 rows.
  for (int64_t rows : {2, 8}) {
    CHECK(readStep(**source, "x", {8, 3}, 0, DType::Int64, 0, rows, 2)
              .equal(x.narrow(0, 16, 8)));
    CHECK(readStep(**source, "columns", {3, 8}, 1, DType::Int64, 0, rows, 1)
              .equal(x.t().narrow(1, 8, 8)));
  }
  ProgramInput table = inputOf("table", {24, 3}, -1);
  CHECK((*source)
            ->read({table, DType::Int32, {24, 3}, 2, 0, 1})
            ->equal(x.to(at::kInt)));

  ProgramInput input = inputOf("x", {8, 3}, 0);
  CHECK((*source)->read({input, DType::Int64, {8, 3}, 3, 0, 1}).error().id ==
        "MP4011");
  CHECK(!(*source)->read({input, DType::Float32, {8, 3}, 0, 0, 1}));
  CHECK(!(*source)->read({input, DType::Int64, {8, 4}, 0, 0, 1}));
  ProgramInput missing = inputOf("y", {8, 3}, 0);
  CHECK(
      (*source)->read({missing, DType::Int64, {8, 3}, 0, 0, 1}).error().where ==
      "input 'y', step 1");

  Program program;
  program.globalRows = 8;
  program.unitRows = 8;
  program.roles.resize(1);
  program.roles[0].inputs = {input, table};
  CHECK((*source)->steps(program) == 3);
  program.roles[0].inputs = {table};
  CHECK((*source)->steps(program) == std::numeric_limits<int64_t>::max());

  // Without rows, and once a unit: two units a step.
  ProgramInput stacked = inputOf("x", {4, 3}, -1);
  CHECK((*source)
            ->read({stacked, DType::Int64, {4, 3}, 1, 1, 2})
            ->equal(x.narrow(0, 12, 4)));
  CHECK((*source)->read({stacked, DType::Int64, {4, 3}, 3, 0, 2}).error().id ==
        "MP4011");
  program.unitRows = 4;
  program.roles[0].inputs = {stacked};
  CHECK((*source)->steps(program) == 3);
  // No whole number of units.
  ProgramInput other = inputOf("x", {7, 3}, -1);
  CHECK(!(*source)->read({other, DType::Int64, {7, 3}, 0, 0, 1}));
}

TEST_CASE("A file that is no archive has no weights") {
  TemporaryFolder folder;
  std::ofstream(folder / "m.pt2") << "not a model";
  auto source = openWeights(folder / "m.pt2");
  REQUIRE(!source);
  CHECK(source.error().code == ExitCode::BadInput);
}

namespace {

/// A .pt2 with one float32 record of six numbers, 0 to 5, and a table entry.
std::string pt2(const std::string &meta, bool isPickled = false,
                int64_t numbers = 6) {
  std::string bytes;
  for (int64_t i = 0; i < numbers; ++i) {
    float number = static_cast<float>(i);
    bytes.append(reinterpret_cast<const char *>(&number), sizeof(number));
  }
  std::string table = "{\"config\": {\"w\": {\"path_name\": \"weight_0\", "
                      "\"use_pickle\": " +
                      std::string(isPickled ? "true" : "false") +
                      ", \"tensor_meta\": " + meta + "}}}";
  return zip({{"m/data/weights/model_weights_config.json", table},
              {"m/data/weights/weight_0", bytes}});
}

std::string meta(int64_t rows, int64_t columns, int64_t stride0,
                 int64_t stride1, int64_t offset) {
  auto number = [](int64_t value) {
    return "{\"as_int\": " + std::to_string(value) + "}";
  };
  return "{\"dtype\": 7, \"sizes\": [" + number(rows) + ", " + number(columns) +
         "], \"strides\": [" + number(stride0) + ", " + number(stride1) +
         "], \"storage_offset\": " + number(offset) + "}";
}

Expected<at::Tensor> readPt2(const std::string &bytes,
                             std::vector<int64_t> shape) {
  TemporaryFolder folder;
  std::ofstream(folder / "m.pt2", std::ios::binary) << bytes;
  auto source = openWeights(folder / "m.pt2");
  if (!source)
    return source.error();
  return readWeight(**source, {"w"}, DType::Float32, shape);
}

} // namespace

TEST_CASE("Weights of a pt2 are read by offset and strides") {
  at::Tensor numbers = at::arange(6, at::TensorOptions(at::kFloat));
  CHECK(readPt2(pt2(meta(2, 3, 3, 1, 0)), {2, 3})->equal(numbers.view({2, 3})));
  CHECK(readPt2(pt2(meta(3, 2, 1, 3, 0)), {3, 2})
            ->equal(numbers.view({2, 3}).t()));
  CHECK(readPt2(pt2(meta(2, 2, 2, 1, 2)), {2, 2})
            ->equal(numbers.narrow(0, 2, 4).view({2, 2})));
  CHECK(readPt2(pt2(meta(0, 3, 3, 1, 0)), {0, 3})->numel() == 0);
}

TEST_CASE("A pt2 that lies about its weights is refused") {
  int64_t huge = std::numeric_limits<int64_t>::max();
  CHECK(!readPt2(pt2(meta(2, 3, 3, 1, 1)), {2, 3}));
  CHECK(!readPt2(pt2(meta(2, 3, 4, 1, 0)), {2, 3}));
  CHECK(!readPt2(pt2(meta(2, 3, huge, 1, 0)), {2, 3}));
  CHECK(!readPt2(pt2(meta(2, 3, 3, 1, huge)), {2, 3}));
  CHECK(!readPt2(pt2(meta(2, 3, -3, 1, 0)), {2, 3}));
  CHECK(!readPt2(pt2(meta(2, 3, 3, 1, 0), /*isPickled=*/true), {2, 3}));
  CHECK(!readPt2(pt2("{}"), {2, 3}));
  CHECK(readPt2(pt2(meta(2, 3, 3, 1, 0)), {3, 2}).error().id == "MP4010");
  // Exported without weights.
  CHECK(readPt2(pt2(meta(2, 3, 3, 1, 0), false, 0), {2, 3})
            .error()
            .what.find("without weights") != std::string::npos);
}
