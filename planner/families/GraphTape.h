//===- GraphTape.h - joint graphs op by op --------------------------------===//
//
// A tape: each forward op leaves a function that writes its backward ops; they
// run in reverse order when the loss is reached. Gradients of a value with
// several consumers are added as they come, those of a parameter are not. The
// ops are those that LibTorch dispatches for the same module code.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/graph/Graph.h"

#include <functional>
#include <map>

namespace monarch::planner {

class GraphTape {
public:
  using Shape = std::vector<int64_t>;
  using Operands = std::vector<ValueId>;

  GraphTape(int64_t rows, DType type);

  ValueId parameter(const std::string &name, Shape shape);
  ValueId input(const std::string &name, Shape shape);
  ValueId constant(const std::string &name, Shape shape, DType type);
  const Shape &shapeOf(ValueId value) const {
    return graph.values[value].shape;
  }
  DType typeOf(ValueId value) const { return graph.values[value].type; }

  // Each writes one op (or the ops of one module) and its backward.
  ValueId arange(int64_t size);
  ValueId embedding(ValueId table, ValueId ids);
  /// `isCopiedBack`: the gradient arrives strided and is copied first.
  ValueId view(ValueId x, Shape shape, bool isCopiedBack = false);
  ValueId transpose(ValueId x, int64_t a, int64_t b);
  ValueId add(ValueId a, ValueId b);
  ValueId mul(ValueId a, ValueId b);
  ValueId gelu(ValueId x);
  ValueId silu(ValueId x);
  ValueId dropout(ValueId x, double probability);
  /// y = x w' + bias over the last dim of [rows, sequence, features]; bias may
  /// be None.
  ValueId linear(ValueId x, ValueId weight, ValueId bias);
  ValueId bmm(ValueId a, ValueId b);
  ValueId layerNorm(ValueId x, ValueId weight, ValueId bias);
  /// Spelled out, in float32 inside, as model code writes it.
  ValueId rmsNorm(ValueId x, ValueId weight);
  Operands split(ValueId x, Shape sizes, int64_t dim);
  ValueId cat(Operands parts, int64_t dim);
  ValueId slice(ValueId x, int64_t dim, int64_t begin, int64_t end);
  ValueId cast(ValueId x, DType type);
  /// x cos + rotate_half(x) sin, x being [rows, heads, sequence, dim].
  ValueId rotary(ValueId x, ValueId cosines, ValueId sines);
  /// [rows, kv, sequence, dim] -> [rows, kv * times, sequence, dim], copied.
  ValueId repeatHeads(ValueId x, int64_t times);
  ValueId attention(ValueId q, ValueId k, ValueId v, bool isCausal);
  /// Rows of a matrix, by number: routed tokens.
  ValueId pickRows(ValueId x, ValueId index);
  ValueId softmax(ValueId x, int64_t dim);
  /// [tokens, copies, features] -> [tokens, features].
  ValueId sumCopies(ValueId x);
  /// Logits [rows, sequence, vocabulary]: writes the loss and the backward.
  void crossEntropy(ValueId logits, ValueId labels);

  Graph finish() { return std::move(graph); }

  /// Module path of the ops that follow.
  std::string module;

private:
  ValueId leaf(ValueKind kind, std::string name, Shape shape, DType type);
  Operands calls(std::string name, Operands operands, std::vector<Arg> args,
                 std::vector<std::optional<Shape>> shapes,
                 std::vector<DType> types);
  ValueId call(std::string name, Operands operands, std::vector<Arg> args,
               Shape shape, std::optional<DType> type = {});
  ValueId viewCall(ValueId x, Shape shape);
  ValueId transposeCall(ValueId x, int64_t a, int64_t b);
  ValueId matrixTranspose(ValueId x);
  ValueId mm(ValueId a, ValueId b);
  ValueId mulCall(ValueId a, ValueId b);
  ValueId castCall(ValueId x, DType type);
  ValueId sumTo(ValueId x, Shape shape);
  ValueId unary(const std::string &name, ValueId x,
                const std::string &backwardName, std::vector<Arg> extra);
  /// Writes the backward of `result`'s producer once the cotangent is known;
  /// not at all where nothing asks for it.
  void record(ValueId result, std::function<void(ValueId)> write);
  void accumulate(ValueId primal, ValueId cotangent);
  ValueId randomLeaf();

  Graph graph;
  DType type;
  Phase phase = Phase::Forward;
  OpId forward = None;
  ValueId random = None;
  std::map<ValueId, ValueId> gradients;
  std::vector<std::function<void()>> backward;
};

} // namespace monarch::planner
