//===- CreationSamples.cpp - samples of tensors made from nothing ---------===//

#include "test/strategies/Samples.h"

namespace monarch::test {

namespace {

using Builder = SampleBuilder;
using Rest = std::vector<Arg>;

/// dtype, layout, device, pin_memory.
Rest options(DType type = DType::Float64) { return {type, {}, {}, {}}; }

Rest joined(Rest first, const Rest &second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

SampleMaker fresh(const std::string &name, Rest between = {}) {
  return one([=](Builder &b) {
    ValueId x = b.run(
        name, {}, joined(joined({ResultSizes{0}}, between), options()), {6, 5});
    b.factors(x, {2, 3, 5});
  });
}

SampleMaker resized(const std::string &name, Rest between = {}) {
  return one([=](Builder &b) {
    b.run(name, {b.normal({3})},
          joined(joined({OperandArg{0}, ResultSizes{0}}, between), options()),
          {6, 5});
  });
}

SampleMaker like(const std::string &name, Rest between = {}) {
  return one([=](Builder &b) {
    Rest last = options(DType::Int64);
    last.emplace_back();
    b.run(name, {b.normal({6, 5})},
          joined(joined({OperandArg{0}}, between), last), {6, 5});
  });
}

std::function<void(Builder &)> range(const std::string &name, Rest bounds,
                                     int64_t size, DType type) {
  return [=](Builder &b) {
    ValueId x = b.run(name, {}, joined(bounds, options(type)), {size});
    b.factors(x, {2, size / 2});
  };
}

} // namespace

void addCreationSamples(SampleTable &table) {
  table["aten::full"] = fresh("aten::full", {2.5});
  table["aten::zeros"] = fresh("aten::zeros");
  table["aten::ones"] = fresh("aten::ones");
  table["aten::new_full"] = resized("aten::new_full", {2.5});
  table["aten::new_zeros"] = resized("aten::new_zeros");
  table["aten::new_ones"] = resized("aten::new_ones");
  table["aten::full_like"] = like("aten::full_like", {int64_t(3)});
  table["aten::fill.Scalar"] = one([](Builder &b) {
    b.run("aten::fill.Scalar", {b.normal({6, 5})}, {OperandArg{0}, 2.5},
          {6, 5});
  });
  table["aten::zeros_like"] = like("aten::zeros_like");
  table["aten::ones_like"] = like("aten::ones_like");
  table["aten::scalar_tensor"] = one([](Builder &b) {
    b.run("aten::scalar_tensor", {}, joined({2.5}, options()),
          Builder::Shape{});
  });
  table["aten::eye"] = one([](Builder &b) {
    b.run("aten::eye", {}, joined({int64_t(6)}, options()), {6, 6});
  });
  table["aten::eye.m"] = one([](Builder &b) {
    b.run("aten::eye.m", {}, joined({int64_t(6), int64_t(4)}, options()),
          {6, 4});
  });
  table["aten::arange"] =
      one(range("aten::arange", {int64_t(8)}, 8, DType::Int64));
  table["aten::arange.start"] = one(
      range("aten::arange.start", {int64_t(3), int64_t(9)}, 6, DType::Int64));
  table["aten::arange.start_step"] = several(
      {range("aten::arange.start_step", {0.5, 3.5, 0.5}, 6, DType::Float64),
       range("aten::arange.start_step", {int64_t(8), int64_t(-4), -2.0}, 6,
             DType::Int64)});
}

} // namespace monarch::test
