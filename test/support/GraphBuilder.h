//===- GraphBuilder.h - joint graphs by hand, for tests -------------------===//
//
//   GraphBuilder b;
//   ValueId x = b.input("x", {4, 8}, DType::Float64);
//   ValueId w = b.parameter("w", {8, 6});
//   ValueId y = b.op("aten::mm", {x, w}, {OperandArg{0}, OperandArg{1}},
//                    {4, 6});
//   b.backwardOf(y);
//   ...
//   Graph graph = b.finish();
//
// Everything is float64 unless told otherwise. `finish` verifies the graph.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/graph/Graph.h"

namespace monarch::test {

class GraphBuilder {
public:
  using Shape = std::vector<int64_t>;

  ValueId parameter(std::string name, Shape shape, DType type = DType::Float64);
  ValueId buffer(std::string name, Shape shape, DType type = DType::Float64);
  ValueId input(std::string name, Shape shape, DType type = DType::Int64);
  ValueId constant(std::string name, Shape shape, DType type = DType::Float64);
  /// Seed, step and unit.
  ValueId random();
  /// What the loss' gradient starts from.
  ValueId seed(DType type = DType::Float64);
  /// 1 / (labels counted over the global batch).
  ValueId inverseCount(ValueId target, DType type = DType::Float64);

  /// An op with one result.
  ValueId op(std::string name, std::vector<ValueId> operands,
             std::vector<Arg> args, Shape shape, DType type = DType::Float64);
  /// An op with several; nullopt: undefined.
  std::vector<ValueId> ops(std::string name, std::vector<ValueId> operands,
                           std::vector<Arg> args,
                           std::vector<std::optional<Shape>> shapes,
                           DType type = DType::Float64);

  /// Ops that follow are backward ops of the producer of this value; None: they
  /// are sums of cotangents.
  void backwardOf(ValueId result);
  /// `gradient` is the cotangent of each of these; of a parameter: one of its
  /// gradients.
  void cotangent(ValueId gradient, std::vector<ValueId> primals);

  OpId producer(ValueId value) const { return graph.values[value].producer; }
  Graph finish() const;

  /// Module path of the ops that follow.
  std::string module;
  /// For what has no call of its own: the loss, outputs, rows of the unit.
  Graph graph;

private:
  ValueId leaf(ValueKind kind, std::string name, Shape shape, DType type);

  Phase phase = Phase::Forward;
  OpId forward = None;
};

} // namespace monarch::test
