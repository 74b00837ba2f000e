//===- Samples.cpp - running ops into samples -----------------------------===//

#include "test/strategies/Samples.h"

#include "test/strategies/Calls.h"
#include "test/strategies/Ranks.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <stdexcept>

namespace monarch::test {

ValueId SampleBuilder::leaf(at::Tensor tensor) {
  ValueId value =
      builder.constant("leaf" + std::to_string(tensors.size()),
                       tensor.sizes().vec(), dtypeOf(tensor.scalar_type()));
  tensors.resize(value + 1);
  tensors[value] = std::move(tensor);
  return value;
}

ValueId SampleBuilder::normal(Shape shape) {
  return leaf(randomTensor(shape, random));
}

ValueId SampleBuilder::complexNumbers(Shape shape) {
  return leaf(
      at::complex(randomTensor(shape, random), randomTensor(shape, random)));
}

ValueId SampleBuilder::positive(Shape shape) {
  return leaf(randomTensor(shape, random).abs() + 0.5);
}

ValueId SampleBuilder::integers(Shape shape, int64_t bound) {
  at::Tensor tensor = at::empty(shape, at::TensorOptions(at::kLong));
  std::uniform_int_distribution<int64_t> uniform(0, bound - 1);
  int64_t *data = tensor.data_ptr<int64_t>();
  for (int64_t k = 0; k < tensor.numel(); ++k)
    data[k] = uniform(random);
  return leaf(tensor);
}

ValueId SampleBuilder::booleans(Shape shape) {
  return leaf(randomTensor(shape, random).gt(0));
}

ValueId SampleBuilder::state() {
  return leaf(at::tensor({int64_t(17), int64_t(3), int64_t(2)}));
}

std::vector<ValueId> SampleBuilder::runAll(const std::string &name,
                                           std::vector<ValueId> operands,
                                           std::vector<Arg> args,
                                           Shapes shapes) {
  std::vector<at::Tensor> inputs;
  for (ValueId operand : operands)
    inputs.push_back(tensors[operand]);
  std::vector<ValueId> values =
      builder.ops(name, std::move(operands), std::move(args), shapes);
  last = static_cast<OpId>(builder.graph.ops.size() - 1);
  std::vector<at::Tensor> results =
      callGraphOp(builder.graph.ops[last], inputs, builder.graph);
  tensors.resize(builder.graph.values.size());
  for (size_t k = 0; k < values.size(); ++k) {
    if (values[k] == None)
      continue;
    if (results[k].sizes() != at::IntArrayRef(*shapes[k]))
      throw std::logic_error(name + ": the sample's shape is wrong");
    tensors[values[k]] = results[k];
    builder.graph.values[values[k]].type = dtypeOf(results[k].scalar_type());
  }
  return values;
}

void SampleBuilder::factors(ValueId value, Shape shape) {
  builder.op("aten::view", {value}, {OperandArg{0}, ResultSizes{0}},
             std::move(shape), builder.graph.values[value].type);
}

void SampleBuilder::sections(ValueId value, int64_t dim,
                             std::vector<int64_t> sizes) {
  Shapes shapes;
  for (int64_t size : sizes) {
    Shape shape = builder.graph.values[value].shape;
    shape[dim] = size;
    shapes.push_back(shape);
  }
  builder.ops("aten::split_with_sizes", {value},
              {OperandArg{0}, ResultsSizes{static_cast<int>(dim)}, dim},
              std::move(shapes), builder.graph.values[value].type);
}

Sample SampleBuilder::finish() const {
  Sample sample{builder.finish(), last, tensors};
  sample.tensors.resize(sample.graph.values.size());
  return sample;
}

SampleMaker several(std::vector<std::function<void(SampleBuilder &)>> builds) {
  return [builds = std::move(builds)](uint64_t seed) {
    std::vector<Sample> samples;
    for (const auto &build : builds) {
      SampleBuilder builder(seed++);
      build(builder);
      samples.push_back(builder.finish());
    }
    return samples;
  };
}

SampleMaker one(std::function<void(SampleBuilder &)> build) {
  return several({std::move(build)});
}

std::vector<Arg> operandArgs(int count, std::vector<Arg> rest) {
  std::vector<Arg> args;
  for (int k = 0; k < count; ++k)
    args.push_back(OperandArg{k});
  args.insert(args.end(), rest.begin(), rest.end());
  return args;
}

const SampleTable &sampleTable() {
  static const SampleTable samples = [] {
    SampleTable table;
    addElementwiseSamples(table);
    addMatmulSamples(table);
    addViewSamples(table);
    addReductionSamples(table);
    addLookupSamples(table);
    addScatterSamples(table);
    addNormalizationSamples(table);
    addAttentionSamples(table);
    addCreationSamples(table);
    addActivationSamples(table);
    addConvolutionSamples(table);
    addChannelNormSamples(table);
    addSelectionSamples(table);
    return table;
  }();
  return samples;
}

} // namespace monarch::test
