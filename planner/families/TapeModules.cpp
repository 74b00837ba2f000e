//===- TapeModules.cpp - norms, attention, routing and the loss -----------===//
#include "planner/families/GraphTape.h"

#include <cmath>

namespace monarch::planner {

namespace {
const Arg arg0 = OperandArg{0}, arg1 = OperandArg{1}, arg2 = OperandArg{2};
} // namespace

ValueId GraphTape::layerNorm(ValueId x, ValueId weight, ValueId bias) {
  const Shape shape = shapeOf(x);
  const std::vector<int64_t> normalized{shape.back()};
  Shape statistics = shape;
  statistics.back() = 1;
  Operands y = calls("aten::native_layer_norm", {x, weight, bias},
                     {arg0, normalized, arg1, arg2, 1e-5},
                     {shape, statistics, statistics},
                     {typeOf(x), DType::Float32, DType::Float32});
  record(y[0], [=, this](ValueId g) {
    Operands d = calls(
        "aten::native_layer_norm_backward", {g, x, y[1], y[2], weight, bias},
        {arg0, arg1, normalized, arg2, OperandArg{3}, OperandArg{4},
         OperandArg{5}, std::vector<bool>{true, true, true}},
        {shape, shapeOf(weight), shapeOf(bias)}, {typeOf(x)});
    accumulate(x, d[0]);
    accumulate(weight, d[1]);
    accumulate(bias, d[2]);
  });
  return y[0];
}

ValueId GraphTape::rmsNorm(ValueId input, ValueId weight) {
  ValueId x = cast(input, DType::Float32);
  const Shape shape = shapeOf(x);
  const int64_t last = static_cast<int64_t>(shape.size()) - 1;
  Shape rowShape = shape;
  rowShape.back() = 1;
  ValueId squares =
      call("aten::pow.Tensor_Scalar", {x}, {arg0, int64_t(2)}, shape);
  record(squares, [=, this](ValueId g) {
    ValueId base = call("aten::pow.Tensor_Scalar", {x}, {arg0, 1.0}, shape);
    ValueId twice = call("aten::mul.Scalar", {base}, {arg0, 2.0}, shape);
    accumulate(x, mulCall(g, twice));
  });
  ValueId mean = call("aten::mean.dim", {squares},
                      {arg0, std::vector<int64_t>{last}, true, {}}, rowShape);
  record(mean, [=, this](ValueId g) {
    ValueId wide =
        call("aten::expand", {g}, {arg0, ResultSizes{0}, false}, shape);
    accumulate(squares, call("aten::div.Scalar", {wide},
                             {arg0, static_cast<double>(shape.back())}, shape));
  });
  ValueId shifted =
      call("aten::add.Tensor", {mean}, {arg0, 1e-6, int64_t(1)}, rowShape);
  record(shifted, [=, this](ValueId g) { accumulate(mean, g); });
  ValueId inverse = call("aten::rsqrt", {shifted}, {arg0}, rowShape);
  record(inverse, [=, this](ValueId g) {
    ValueId cube = call("aten::pow.Tensor_Scalar", {inverse},
                        {arg0, int64_t(3)}, rowShape);
    ValueId half = call("aten::mul.Scalar", {g}, {arg0, -0.5}, rowShape);
    accumulate(shifted, mulCall(half, cube));
  });
  return mul(weight, cast(mul(x, inverse), typeOf(input)));
}

ValueId GraphTape::cat(Operands parts, int64_t dim) {
  Shape shape = shapeOf(parts[0]);
  OperandListArg list;
  shape[dim] = 0;
  for (ValueId part : parts) {
    list.indices.push_back(static_cast<int>(list.indices.size()));
    shape[dim] += shapeOf(part)[dim];
  }
  ValueId y = call("aten::cat", parts, {list, dim}, shape);
  record(y, [=, this](ValueId g) {
    int64_t begin = 0;
    for (ValueId part : parts) {
      int64_t end = begin + shapeOf(part)[dim];
      accumulate(part,
                 call("aten::slice.Tensor", {g},
                      {arg0, dim, begin, end, int64_t(1)}, shapeOf(part)));
      begin = end;
    }
  });
  return y;
}

ValueId GraphTape::rotary(ValueId x, ValueId cosines, ValueId sines) {
  const Shape shape = shapeOf(x);
  const int64_t dim = static_cast<int64_t>(shape.size()) - 1;
  const int64_t size = shape.back(), half = size / 2;
  Shape part = shape;
  part.back() = half;
  ValueId plain = mul(x, cosines);
  ValueId first = slice(x, dim, 0, half), second = slice(x, dim, half, size);
  ValueId negated = call("aten::neg", {second}, {arg0}, part);
  record(negated, [=, this](ValueId g) {
    accumulate(second, call("aten::neg", {g}, {arg0}, part));
  });
  return add(plain, mul(cat({negated, first}, dim), sines));
}

ValueId GraphTape::repeatHeads(ValueId x, int64_t times) {
  if (times == 1)
    return x;
  const Shape shape = shapeOf(x);
  const Shape single{shape[0], shape[1], 1, shape[2], shape[3]};
  const Shape wide{shape[0], shape[1], times, shape[2], shape[3]};
  ValueId one = call("aten::unsqueeze", {x}, {arg0, int64_t(2)}, single);
  record(one, [=, this](ValueId g) {
    accumulate(x, call("aten::squeeze.dim", {g}, {arg0, int64_t(2)}, shape));
  });
  ValueId many =
      call("aten::expand", {one}, {arg0, ResultSizes{0}, false}, wide);
  record(many, [=, this](ValueId g) {
    accumulate(one, call("aten::sum.dim_IntList", {g},
                         {arg0, std::vector<int64_t>{2}, true, {}}, single));
  });
  ValueId copy = call("aten::clone", {many}, {arg0, {}}, wide);
  record(copy, [=, this](ValueId g) { accumulate(many, g); });
  return view(copy, {shape[0], shape[1] * times, shape[2], shape[3]});
}

ValueId GraphTape::attention(ValueId q, ValueId k, ValueId v, bool isCausal) {
  const Shape queries = shapeOf(q), values = shapeOf(v);
  Shape out = queries;
  out.back() = values.back();
  const double scale = 1 / std::sqrt(static_cast<double>(queries.back()));
  Operands y = calls("monarch::attention", {q, k, v},
                     {arg0, arg1, arg2, {}, isCausal, scale},
                     {out, Shape{queries[0], queries[1], queries[2]}},
                     {typeOf(q), DType::Float32});
  record(y[0], [=, this](ValueId g) {
    Operands d =
        calls("monarch::attention_backward", {g, q, k, v, y[0], y[1]},
              {arg0,
               arg1,
               arg2,
               OperandArg{3},
               {},
               OperandArg{4},
               OperandArg{5},
               isCausal,
               scale,
               std::vector<bool>{true, true, true, false}},
              {queries, shapeOf(k), values, std::nullopt}, {typeOf(q)});
    accumulate(q, d[0]);
    accumulate(k, d[1]);
    accumulate(v, d[2]);
  });
  return y[0];
}

ValueId GraphTape::pickRows(ValueId x, ValueId index) {
  Shape shape = shapeOf(x);
  shape[0] = shapeOf(index)[0];
  ValueId y =
      call("aten::index_select", {x, index}, {arg0, int64_t(0), arg1}, shape);
  record(y, [=, this](ValueId g) {
    accumulate(x, call("aten::embedding_dense_backward", {g, index},
                       {arg0, arg1, ResultSize{0, 0}, int64_t(-1), false},
                       shapeOf(x)));
  });
  return y;
}

ValueId GraphTape::softmax(ValueId x, int64_t dim) {
  ValueId y = call("aten::_softmax", {x}, {arg0, dim, false}, shapeOf(x));
  record(y, [=, this](ValueId g) {
    accumulate(x, call("aten::_softmax_backward_data", {g, y},
                       {arg0, arg1, dim, typeOf(x)}, shapeOf(x)));
  });
  return y;
}

ValueId GraphTape::sumCopies(ValueId x) {
  const Shape shape = shapeOf(x);
  ValueId y =
      call("aten::sum.dim_IntList", {x},
           {arg0, std::vector<int64_t>{1}, false, {}}, {shape[0], shape[2]});
  record(y, [=, this](ValueId g) {
    ValueId single = call("aten::unsqueeze", {g}, {arg0, int64_t(1)},
                          {shape[0], 1, shape[2]});
    accumulate(x, call("aten::expand", {single}, {arg0, ResultSizes{0}, false},
                       shape));
  });
  return y;
}

void GraphTape::crossEntropy(ValueId logits, ValueId labels) {
  const int64_t rows = shapeOf(logits)[0] * shapeOf(logits)[1];
  const int64_t sum = 2, ignored = -100;
  logits = cast(logits, type == DType::Float64 ? type : DType::Float32);
  ValueId flat = view(logits, {rows, shapeOf(logits)[2]});
  ValueId target = call("aten::view", {labels}, {arg0, ResultSizes{0}}, {rows});
  ValueId logp = call("aten::_log_softmax", {flat}, {arg0, int64_t(1), false},
                      shapeOf(flat));
  record(logp, [=, this](ValueId g) {
    accumulate(flat,
               call("aten::_log_softmax_backward_data", {g, logp},
                    {arg0, arg1, int64_t(1), typeOf(flat)}, shapeOf(flat)));
  });
  Operands nll =
      calls("aten::nll_loss_forward", {logp, target},
            {arg0, arg1, {}, sum, ignored}, {Shape{}, Shape{}}, {typeOf(logp)});
  record(nll[0], [=, this](ValueId g) {
    accumulate(logp, call("aten::nll_loss_backward", {g, logp, target, nll[1]},
                          {arg0, arg1, arg2, {}, sum, ignored, OperandArg{3}},
                          shapeOf(logp)));
  });
  LossCount count;
  count.inverseCount =
      leaf(ValueKind::InverseCount, "inverse_count.0", {}, typeOf(logp));
  count.target = target;
  graph.counts.push_back(count);
  ValueId inverse = count.inverseCount;
  ValueId loss = call("aten::mul.Tensor", {nll[0], inverse}, {arg0, arg1}, {});
  record(loss, [=, this](ValueId g) {
    accumulate(nll[0],
               call("aten::mul.Tensor", {g, inverse}, {arg0, arg1}, {}));
  });
  graph.loss = loss;
  graph.outputs = {loss, logits};
  gradients[loss] = leaf(ValueKind::Seed, "seed", {}, typeOf(logp));
  graph.values[gradients[loss]].cotangentOf = {loss};
  for (auto step = backward.rbegin(); step != backward.rend(); ++step)
    (*step)();
}

} // namespace monarch::planner
