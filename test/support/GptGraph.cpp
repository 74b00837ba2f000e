//===- GptGraph.cpp - the joint graph of a GPT of any size, for tests -----===//
//
// A tape: each forward op leaves a function that writes its backward ops; they
// run in reverse order. Gradients of a value with several consumers are added
// as they come.
//
//===----------------------------------------------------------------------===//
#include "test/support/GptGraph.h"

#include "test/support/GraphBuilder.h"

#include <cmath>
#include <functional>
#include <map>

namespace monarch::test {

namespace {

using Shape = GraphBuilder::Shape;
using Operands = std::vector<ValueId>;

const Arg arg0 = OperandArg{0}, arg1 = OperandArg{1}, arg2 = OperandArg{2};

class Tape {
public:
  Tape(const GptShape &size) : size(size) {}

  Graph run() {
    const int64_t width = size.heads * size.headDim;
    builder.graph.unitRows = size.rows;
    ValueId ids = builder.input("input_ids", {size.rows, size.sequence});
    ValueId labels = builder.input("labels", {size.rows, size.sequence});
    ValueId tokens = parameter("tokens.weight", {size.vocabulary, width});
    ValueId positions = parameter("positions.weight", {size.sequence, width});
    ValueId range = builder.op("aten::arange", {},
                               {size.sequence, DType::Int64, {}, {}, {}},
                               {size.sequence}, DType::Int64);
    ValueId x = add(embedding(tokens, ids), embedding(positions, range));
    for (int64_t layer = 0; layer < size.layers; ++layer)
      x = block("blocks." + std::to_string(layer), x);
    x = layerNorm("norm", x);
    builder.module = "head";
    ValueId logits = linear(x, tokens, None);
    builder.module = "";
    crossEntropy(logits, labels);
    for (auto step = backward.rbegin(); step != backward.rend(); ++step)
      (*step)();
    return builder.finish();
  }

private:
  const Shape &shapeOf(ValueId value) const {
    return builder.graph.values[value].shape;
  }
  ValueId parameter(const std::string &name, Shape shape) {
    return builder.parameter(name, std::move(shape), size.type);
  }
  ValueId call(std::string name, Operands operands, std::vector<Arg> args,
               Shape shape) {
    return builder.op(std::move(name), std::move(operands), std::move(args),
                      std::move(shape), size.type);
  }
  ValueId viewCall(ValueId x, Shape shape) {
    return call("aten::view", {x}, {arg0, ResultSizes{0}}, std::move(shape));
  }
  ValueId matrixTranspose(ValueId x) {
    return call("aten::t", {x}, {arg0}, {shapeOf(x)[1], shapeOf(x)[0]});
  }
  ValueId mm(ValueId a, ValueId b) {
    return call("aten::mm", {a, b}, {arg0, arg1},
                {shapeOf(a)[0], shapeOf(b)[1]});
  }

  /// Writes the backward of `result`'s producer when the cotangent is known.
  void record(ValueId result, std::function<void(ValueId)> write) {
    backward.push_back(
        [this, result, module = builder.module, write = std::move(write)] {
          builder.module = module;
          builder.backwardOf(result);
          write(gradient.at(result));
        });
  }
  /// A parameter's gradients are not added: each use has its own.
  void accumulate(ValueId primal, ValueId cotangent) {
    builder.cotangent(cotangent, {primal});
    if (builder.graph.values[primal].kind == ValueKind::Parameter)
      return;
    auto [position, isFirst] = gradient.try_emplace(primal, cotangent);
    if (isFirst)
      return;
    builder.backwardOf(None);
    position->second = call("aten::add.Tensor", {position->second, cotangent},
                            {arg0, arg1, int64_t(1)}, shapeOf(primal));
    builder.cotangent(position->second, {primal});
  }

  ValueId view(ValueId x, Shape shape) {
    ValueId y = viewCall(x, std::move(shape));
    record(y, [=, this](ValueId g) { accumulate(x, viewCall(g, shapeOf(x))); });
    return y;
  }
  ValueId transposeCall(ValueId x) {
    Shape shape = shapeOf(x);
    std::swap(shape[1], shape[2]);
    return call("aten::transpose.int", {x}, {arg0, int64_t(1), int64_t(2)},
                shape);
  }
  ValueId transpose(ValueId x) {
    ValueId y = transposeCall(x);
    record(y, [=, this](ValueId g) { accumulate(x, transposeCall(g)); });
    return y;
  }
  ValueId add(ValueId a, ValueId b) {
    ValueId y =
        call("aten::add.Tensor", {a, b}, {arg0, arg1, int64_t(1)}, shapeOf(a));
    record(y, [=, this](ValueId g) {
      accumulate(a, g);
      // The positions have no batch dim: their cotangent is summed over it.
      if (shapeOf(a) == shapeOf(b))
        return accumulate(b, g);
      Shape kept = shapeOf(b);
      kept.insert(kept.begin(), 1);
      ValueId sum = call("aten::sum.dim_IntList", {g},
                         {arg0, std::vector<int64_t>{0}, true, {}}, kept);
      accumulate(b, viewCall(sum, shapeOf(b)));
    });
    return y;
  }
  ValueId embedding(ValueId table, ValueId ids) {
    Shape shape = shapeOf(ids);
    shape.push_back(shapeOf(table)[1]);
    ValueId y = call("aten::embedding", {table, ids},
                     {arg0, arg1, int64_t(-1), false, false}, shape);
    record(y, [=, this](ValueId g) {
      accumulate(table, call("aten::embedding_dense_backward", {g, ids},
                             {arg0, arg1, ResultSize{0, 0}, int64_t(-1), false},
                             shapeOf(table)));
    });
    return y;
  }
  ValueId gelu(ValueId x) {
    const Arg kind = std::string("tanh");
    ValueId y = call("aten::gelu", {x}, {arg0, kind}, shapeOf(x));
    record(y, [=, this](ValueId g) {
      accumulate(x, call("aten::gelu_backward", {g, x}, {arg0, arg1, kind},
                         shapeOf(x)));
    });
    return y;
  }

  /// y = x w' + bias over the last dim of a [rows, sequence, features] tensor.
  ValueId linear(ValueId x, ValueId weight, ValueId bias) {
    const int64_t rows = shapeOf(x)[0] * shapeOf(x)[1];
    const int64_t features = shapeOf(weight)[0];
    ValueId wt = matrixTranspose(weight);
    record(wt,
           [=, this](ValueId g) { accumulate(weight, matrixTranspose(g)); });
    ValueId flat = view(x, {rows, shapeOf(x)[2]});
    ValueId y = bias == None
                    ? mm(flat, wt)
                    : call("aten::addmm", {bias, flat, wt},
                           {arg0, arg1, arg2, 1.0, 1.0}, {rows, features});
    record(y, [=, this](ValueId g) {
      accumulate(flat, mm(g, matrixTranspose(wt)));
      accumulate(wt, matrixTranspose(mm(matrixTranspose(g), flat)));
      if (bias == None)
        return;
      ValueId sum =
          call("aten::sum.dim_IntList", {g},
               {arg0, std::vector<int64_t>{0}, true, {}}, {1, features});
      accumulate(bias, viewCall(sum, {features}));
    });
    return view(y, {shapeOf(x)[0], shapeOf(x)[1], features});
  }
  ValueId linear(const std::string &name, ValueId x, int64_t features) {
    builder.module = name;
    ValueId weight = parameter(name + ".weight", {features, shapeOf(x)[2]});
    return linear(x, weight, parameter(name + ".bias", {features}));
  }

  ValueId layerNorm(const std::string &name, ValueId x) {
    builder.module = name;
    const Shape shape = shapeOf(x);
    ValueId weight = parameter(name + ".weight", {shape[2]});
    ValueId bias = parameter(name + ".bias", {shape[2]});
    const std::vector<int64_t> normalized{shape[2]};
    const Shape statistics{shape[0], shape[1], 1};
    Operands y = builder.ops("aten::native_layer_norm", {x, weight, bias},
                             {arg0, normalized, arg1, arg2, 1e-5},
                             {shape, statistics, statistics}, size.type);
    record(y[0], [=, this](ValueId g) {
      Operands d = builder.ops(
          "aten::native_layer_norm_backward", {g, x, y[1], y[2], weight, bias},
          {arg0, arg1, normalized, arg2, OperandArg{3}, OperandArg{4},
           OperandArg{5}, std::vector<bool>{true, true, true}},
          {shape, shapeOf(weight), shapeOf(bias)}, size.type);
      accumulate(x, d[0]);
      accumulate(weight, d[1]);
      accumulate(bias, d[2]);
    });
    return y[0];
  }

  Operands splitInThree(ValueId x) {
    Shape part = shapeOf(x);
    part[2] /= 3;
    Operands parts = builder.ops("aten::split_with_sizes", {x},
                                 {arg0, ResultsSizes{2}, int64_t(2)},
                                 {part, part, part}, size.type);
    record(parts[0], [=, this](ValueId) {
      accumulate(x, call("aten::cat",
                         {gradient.at(parts[0]), gradient.at(parts[1]),
                          gradient.at(parts[2])},
                         {OperandListArg{{0, 1, 2}}, int64_t(2)}, shapeOf(x)));
    });
    return parts;
  }

  ValueId attention(ValueId q, ValueId k, ValueId v) {
    const Shape shape = shapeOf(q);
    const double scale = 1 / std::sqrt(static_cast<double>(size.headDim));
    Operands out = builder.ops(
        "monarch::attention", {q, k, v}, {arg0, arg1, arg2, {}, true, scale},
        {shape, Shape{shape[0], shape[1], shape[2]}}, size.type);
    builder.graph.values[out[1]].type =
        size.type == DType::Float64 ? DType::Float64 : DType::Float32;
    record(out[0], [=, this](ValueId g) {
      Operands d = builder.ops("monarch::attention_backward",
                               {g, q, k, v, out[0], out[1]},
                               {arg0,
                                arg1,
                                arg2,
                                OperandArg{3},
                                {},
                                OperandArg{4},
                                OperandArg{5},
                                true,
                                scale,
                                std::vector<bool>{true, true, true, false}},
                               {shape, shape, shape, std::nullopt}, size.type);
      accumulate(q, d[0]);
      accumulate(k, d[1]);
      accumulate(v, d[2]);
    });
    return out[0];
  }

  ValueId block(const std::string &name, ValueId x) {
    const Shape shape = shapeOf(x);
    const Shape heads{shape[0], shape[1], size.heads, size.headDim};
    ValueId fused =
        linear(name + ".qkv", layerNorm(name + ".norm1", x), 3 * shape[2]);
    builder.module = name + ".attention";
    Operands parts = splitInThree(fused);
    for (ValueId &part : parts)
      part = transpose(view(part, heads));
    ValueId y = view(transpose(attention(parts[0], parts[1], parts[2])), shape);
    x = add(x, linear(name + ".proj", y, shape[2]));
    y = linear(name + ".up", layerNorm(name + ".norm2", x), 4 * shape[2]);
    return add(x, linear(name + ".down", gelu(y), shape[2]));
  }

  void crossEntropy(ValueId logits, ValueId labels) {
    const int64_t rows = shapeOf(logits)[0] * shapeOf(logits)[1];
    const int64_t sum = 2, ignored = -100;
    ValueId target = builder.op("aten::view", {labels}, {arg0, ResultSizes{0}},
                                {rows}, DType::Int64);
    ValueId flat = view(logits, {rows, size.vocabulary});
    ValueId logp = call("aten::_log_softmax", {flat}, {arg0, int64_t(1), false},
                        shapeOf(flat));
    record(logp, [=, this](ValueId g) {
      accumulate(flat,
                 call("aten::_log_softmax_backward_data", {g, logp},
                      {arg0, arg1, int64_t(1), size.type}, shapeOf(flat)));
    });
    Operands nll = builder.ops("aten::nll_loss_forward", {logp, target},
                               {arg0, arg1, {}, sum, ignored},
                               {Shape{}, Shape{}}, size.type);
    record(nll[0], [=, this](ValueId g) {
      accumulate(logp,
                 call("aten::nll_loss_backward", {g, logp, target, nll[1]},
                      {arg0, arg1, arg2, {}, sum, ignored, OperandArg{3}},
                      shapeOf(logp)));
    });
    ValueId inverse = builder.inverseCount(target, size.type);
    ValueId loss =
        call("aten::mul.Tensor", {nll[0], inverse}, {arg0, arg1}, {});
    record(loss, [=, this](ValueId g) {
      accumulate(nll[0],
                 call("aten::mul.Tensor", {g, inverse}, {arg0, arg1}, {}));
    });
    builder.graph.loss = loss;
    builder.graph.outputs = {loss, logits};
    gradient[loss] = builder.seed(size.type);
    builder.cotangent(gradient[loss], {loss});
  }

  const GptShape size;
  GraphBuilder builder;
  std::map<ValueId, ValueId> gradient;
  std::vector<std::function<void()>> backward;
};

} // namespace

Graph gptGraph(const GptShape &shape) {
  Graph graph = Tape(shape).run();
  // A size that grows with the rows is a multiple of them.
  GptShape more = shape;
  ++more.rows;
  Graph larger = Tape(more).run();
  for (size_t value = 0; value < graph.values.size(); ++value)
    for (size_t dim = 0; dim < graph.values[value].shape.size(); ++dim)
      graph.values[value].batch[dim] =
          larger.values[value].shape[dim] - graph.values[value].shape[dim];
  graph.dynamicBatch = true;
  return graph;
}

} // namespace monarch::test
