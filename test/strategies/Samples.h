//===- Samples.h - sample calls of every registered op --------------------===//
//
// A sample is a small graph with the tensors of its values, made by running it:
// operands of a backward op come from its forward op. The sampled op is the
// last one that was run. Views and splits that only give dims their factors and
// sections are added without running them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "test/support/GraphBuilder.h"

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <random>

namespace monarch::test {

struct Sample {
  Graph graph;
  OpId op = None;
  /// By value; undefined for those of views and splits that were not run.
  std::vector<at::Tensor> tensors;
};

class SampleBuilder {
public:
  using Shape = std::vector<int64_t>;
  using Shapes = std::vector<std::optional<Shape>>;

  explicit SampleBuilder(uint64_t seed) : random(seed) {}

  /// Leaves: normal numbers; positive ones; integers in [0, bound); booleans.
  ValueId normal(Shape shape);
  ValueId positive(Shape shape);
  ValueId integers(Shape shape, int64_t bound);
  ValueId booleans(Shape shape);
  ValueId complexNumbers(Shape shape);
  ValueId leaf(at::Tensor tensor);
  /// Seed, step and unit.
  ValueId state();

  /// Runs an op. nullopt: the result is absent.
  std::vector<ValueId> runAll(const std::string &name,
                              std::vector<ValueId> operands,
                              std::vector<Arg> args, Shapes shapes);
  /// Runs an op with one result.
  ValueId run(const std::string &name, std::vector<ValueId> operands,
              std::vector<Arg> args, Shape shape) {
    return runAll(name, std::move(operands), std::move(args),
                  Shapes{std::move(shape)})[0];
  }

  /// The value has this shape when its dims are spelled as factors.
  void factors(ValueId value, Shape shape);
  /// The dim is a concatenation of these sizes.
  void sections(ValueId value, int64_t dim, std::vector<int64_t> sizes);

  const at::Tensor &tensor(ValueId value) const { return tensors[value]; }
  Sample finish() const;

  std::mt19937_64 random;

private:
  GraphBuilder builder;
  std::vector<at::Tensor> tensors;
  OpId last = None;
};

/// Makes samples of one op.
using SampleMaker = std::function<std::vector<Sample>(uint64_t seed)>;
using SampleTable = std::map<std::string, SampleMaker>;
const SampleTable &sampleTable();

void addElementwiseSamples(SampleTable &table);
void addMatmulSamples(SampleTable &table);
void addViewSamples(SampleTable &table);
void addReductionSamples(SampleTable &table);
void addLookupSamples(SampleTable &table);
void addScatterSamples(SampleTable &table);
void addNormalizationSamples(SampleTable &table);
void addAttentionSamples(SampleTable &table);
void addCreationSamples(SampleTable &table);
void addActivationSamples(SampleTable &table);
void addConvolutionSamples(SampleTable &table);
void addChannelNormSamples(SampleTable &table);
void addSelectionSamples(SampleTable &table);

/// One sample by a function that runs ops on a builder.
SampleMaker one(std::function<void(SampleBuilder &)> build);
/// Several, each with a seed of its own.
SampleMaker several(std::vector<std::function<void(SampleBuilder &)>> builds);

/// The first operands as arguments: OperandArg 0 .. count - 1, then `rest`.
std::vector<Arg> operandArgs(int count, std::vector<Arg> rest = {});

} // namespace monarch::test
