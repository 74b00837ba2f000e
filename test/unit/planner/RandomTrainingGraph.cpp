//===- RandomTrainingGraph.cpp - small joint graphs of real ops -----------===//
//
// A tape: each forward op leaves a function that writes its backward, run in
// reverse.
//
//===----------------------------------------------------------------------===//
#include "test/unit/planner/RandomTrainingGraph.h"

#include "test/support/GraphBuilder.h"

#include <functional>
#include <map>

namespace monarch::test {

namespace {

using Shape = GraphBuilder::Shape;

const Arg arg0 = OperandArg{0}, arg1 = OperandArg{1}, arg2 = OperandArg{2};

class Tape {
public:
  Tape(unsigned seed, int64_t rows, int forwardOps)
      : random(seed), rows(rows), wanted(forwardOps) {}

  Graph run() {
    builder.graph.unitRows = rows;
    int64_t width = 2 * (1 + draw(3));
    ValueId x = builder.input("x", {rows, width}, DType::Float64);
    // The first op reads a weight: what depends on inputs alone is no choice.
    x = product(x);
    while (made < wanted - 1)
      x = step(x);
    ValueId loss = builder.op("aten::sum", {x}, {arg0, {}}, {});
    record(loss, [=, this](ValueId g) {
      accumulate(x, builder.op("aten::expand", {g},
                               {arg0, ResultSizes{0}, false}, shapeOf(x)));
    });
    builder.graph.loss = loss;
    builder.graph.outputs = {loss};
    gradient[loss] = builder.seed();
    builder.cotangent(gradient[loss], {loss});
    for (auto write = backward.rbegin(); write != backward.rend(); ++write)
      (*write)();
    return builder.finish();
  }

private:
  unsigned draw(unsigned count) { return random() % count; }
  const Shape &shapeOf(ValueId value) const {
    return builder.graph.values[value].shape;
  }
  std::string fresh(const char *stem) {
    return stem + std::to_string(parameters++);
  }

  ValueId step(ValueId x) {
    activations.push_back(x);
    ++made;
    bool matrix = shapeOf(x).size() == 2;
    switch (draw(8)) {
    case 0:
    case 1:
      if (matrix) {
        --made;
        return product(x);
      }
      return view(x, {shapeOf(x)[0] * shapeOf(x)[1], shapeOf(x)[2]});
    case 2:
      return gelu(x);
    case 3:
      return sum(x);
    case 4:
      return square(x);
    case 5:
      return layerNorm(x);
    case 6:
      return softmax(x);
    default:
      if (!matrix)
        return transpose(x);
      if (shapeOf(x)[1] % 2 == 0 && shapeOf(x)[0] % rows == 0)
        return view(x, {shapeOf(x)[0], shapeOf(x)[1] / 2, 2});
      return gelu(x);
    }
  }

  void record(ValueId result, std::function<void(ValueId)> write) {
    backward.push_back([this, result, write = std::move(write)] {
      current = result;
      builder.backwardOf(current);
      write(gradient.at(result));
    });
  }
  void accumulate(ValueId primal, ValueId cotangent) {
    if (builder.graph.values[primal].kind == ValueKind::Input)
      return;
    builder.cotangent(cotangent, {primal});
    if (builder.graph.values[primal].kind == ValueKind::Parameter)
      return;
    auto [position, isFirst] = gradient.try_emplace(primal, cotangent);
    if (isFirst)
      return;
    builder.backwardOf(None);
    position->second =
        builder.op("aten::add.Tensor", {position->second, cotangent},
                   {arg0, arg1, int64_t(1)}, shapeOf(primal));
    builder.cotangent(position->second, {primal});
    builder.backwardOf(current);
  }

  ValueId matrixTranspose(ValueId x) {
    return builder.op("aten::t", {x}, {arg0}, {shapeOf(x)[1], shapeOf(x)[0]});
  }
  ValueId mm(ValueId a, ValueId b) {
    return builder.op("aten::mm", {a, b}, {arg0, arg1},
                      {shapeOf(a)[0], shapeOf(b)[1]});
  }

  ValueId product(ValueId x) {
    ++made;
    int64_t in = shapeOf(x)[1], out = 2 * (1 + draw(3));
    bool transposed = draw(2) == 0, biased = draw(2) == 0;
    ValueId weight = builder.parameter(fresh("w"), transposed ? Shape{out, in}
                                                              : Shape{in, out});
    ValueId bias = biased ? builder.parameter(fresh("b"), {out}) : None;
    ValueId matrix = transposed ? matrixTranspose(weight) : weight;
    if (transposed)
      record(matrix,
             [=, this](ValueId g) { accumulate(weight, matrixTranspose(g)); });
    ValueId y =
        biased ? builder.op("aten::addmm", {bias, x, matrix},
                            {arg0, arg1, arg2, 1.0, 1.0}, {shapeOf(x)[0], out})
               : mm(x, matrix);
    bool first = builder.graph.values[x].kind == ValueKind::Input;
    record(y, [=, this](ValueId g) {
      if (!first)
        accumulate(x, mm(g, matrixTranspose(matrix)));
      accumulate(matrix, mm(matrixTranspose(x), g));
      if (!biased)
        return;
      ValueId total =
          builder.op("aten::sum.dim_IntList", {g},
                     {arg0, std::vector<int64_t>{0}, true, {}}, {1, out});
      accumulate(bias, builder.op("aten::view", {total}, {arg0, ResultSizes{0}},
                                  {out}));
    });
    return y;
  }

  ValueId gelu(ValueId x) {
    const Arg kind = std::string("none");
    ValueId y = builder.op("aten::gelu", {x}, {arg0, kind}, shapeOf(x));
    record(y, [=, this](ValueId g) {
      accumulate(x, builder.op("aten::gelu_backward", {g, x},
                               {arg0, arg1, kind}, shapeOf(x)));
    });
    return y;
  }

  /// With an earlier activation of the same shape, if there is one. All grow
  /// with the rows in their first dim.
  ValueId sum(ValueId x) {
    ValueId other = x;
    for (ValueId earlier : activations)
      if (other == x && shapeOf(earlier) == shapeOf(x))
        other = earlier;
    ValueId y = builder.op("aten::add.Tensor", {x, other},
                           {arg0, arg1, int64_t(1)}, shapeOf(x));
    record(y, [=, this](ValueId g) {
      accumulate(x, g);
      accumulate(other, g);
    });
    return y;
  }

  ValueId square(ValueId x) {
    ValueId y =
        builder.op("aten::mul.Tensor", {x, x}, {arg0, arg1}, shapeOf(x));
    record(y, [=, this](ValueId g) {
      for (int side = 0; side < 2; ++side)
        accumulate(x, builder.op("aten::mul.Tensor", {g, x}, {arg0, arg1},
                                 shapeOf(x)));
    });
    return y;
  }

  ValueId layerNorm(ValueId x) {
    Shape shape = shapeOf(x), statistics = shape;
    const int64_t features = shape.back();
    statistics.back() = 1;
    ValueId weight = builder.parameter(fresh("g"), {features});
    ValueId bias = builder.parameter(fresh("o"), {features});
    const std::vector<int64_t> normalized{features};
    std::vector<ValueId> y = builder.ops(
        "aten::native_layer_norm", {x, weight, bias},
        {arg0, normalized, arg1, arg2, 1e-5}, {shape, statistics, statistics});
    record(y[0], [=, this](ValueId g) {
      std::vector<ValueId> d = builder.ops(
          "aten::native_layer_norm_backward", {g, x, y[1], y[2], weight, bias},
          {arg0, arg1, normalized, arg2, OperandArg{3}, OperandArg{4},
           OperandArg{5}, std::vector<bool>{true, true, true}},
          {shape, Shape{features}, Shape{features}});
      accumulate(x, d[0]);
      accumulate(weight, d[1]);
      accumulate(bias, d[2]);
    });
    return y[0];
  }

  ValueId softmax(ValueId x) {
    const int64_t dim = static_cast<int64_t>(shapeOf(x).size()) - 1;
    ValueId y =
        builder.op("aten::_softmax", {x}, {arg0, dim, false}, shapeOf(x));
    record(y, [=, this](ValueId g) {
      accumulate(x, builder.op("aten::_softmax_backward_data", {g, y},
                               {arg0, arg1, dim, DType::Float64}, shapeOf(x)));
    });
    return y;
  }

  ValueId view(ValueId x, Shape shape) {
    ValueId y =
        builder.op("aten::view", {x}, {arg0, ResultSizes{0}}, std::move(shape));
    record(y, [=, this](ValueId g) {
      accumulate(
          x, builder.op("aten::view", {g}, {arg0, ResultSizes{0}}, shapeOf(x)));
    });
    return y;
  }

  ValueId transposed(ValueId x) {
    Shape shape = shapeOf(x);
    std::swap(shape[1], shape[2]);
    return builder.op("aten::transpose.int", {x},
                      {arg0, int64_t(1), int64_t(2)}, shape);
  }
  ValueId transpose(ValueId x) {
    ValueId y = transposed(x);
    record(y, [=, this](ValueId g) { accumulate(x, transposed(g)); });
    return y;
  }

  std::mt19937 random;
  int64_t rows;
  int wanted;
  int made = 0;
  int parameters = 0;
  /// Whose backward is being written.
  ValueId current = None;
  std::vector<ValueId> activations;
  GraphBuilder builder;
  std::map<ValueId, ValueId> gradient;
  std::vector<std::function<void()>> backward;
};

} // namespace

Graph randomTrainingGraph(unsigned seed, int64_t rows, int forwardOps) {
  Graph graph = Tape(seed, rows, forwardOps).run();
  Graph larger = Tape(seed, rows + 1, forwardOps).run();
  for (size_t value = 0; value < graph.values.size(); ++value)
    for (size_t dim = 0; dim < graph.values[value].shape.size(); ++dim)
      graph.values[value].batch[dim] =
          larger.values[value].shape[dim] - graph.values[value].shape[dim];
  graph.dynamicBatch = true;
  return graph;
}

} // namespace monarch::test
