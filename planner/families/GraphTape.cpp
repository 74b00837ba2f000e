//===- GraphTape.cpp - leaves, bookkeeping and plain ops ------------------===//
#include "planner/families/GraphTape.h"

namespace monarch::planner {

namespace {
const Arg arg0 = OperandArg{0}, arg1 = OperandArg{1}, arg2 = OperandArg{2};
} // namespace

GraphTape::GraphTape(int64_t rows, DType type) : type(type) {
  graph.unitRows = rows;
  graph.dynamicBatch = true;
}

ValueId GraphTape::leaf(ValueKind kind, std::string name, Shape shape,
                        DType type) {
  Value value;
  value.name = std::move(name);
  value.kind = kind;
  value.type = type;
  value.batch.assign(shape.size(), 0);
  value.shape = std::move(shape);
  graph.values.push_back(std::move(value));
  return static_cast<ValueId>(graph.values.size() - 1);
}

ValueId GraphTape::parameter(const std::string &name, Shape shape) {
  Parameter parameter;
  parameter.names = {name};
  parameter.value = leaf(ValueKind::Parameter, name, std::move(shape), type);
  graph.parameters.push_back(parameter);
  return parameter.value;
}

ValueId GraphTape::input(const std::string &name, Shape shape) {
  Input input;
  input.name = name;
  input.value = leaf(ValueKind::Input, name, std::move(shape), DType::Int64);
  graph.inputs.push_back(input);
  return input.value;
}

ValueId GraphTape::constant(const std::string &name, Shape shape, DType type) {
  ValueId value = leaf(ValueKind::Constant, name, std::move(shape), type);
  graph.constants.push_back(value);
  graph.constantStorage.emplace_back();
  return value;
}

ValueId GraphTape::randomLeaf() {
  if (random == None)
    random = leaf(ValueKind::Random, "random", {3}, DType::Int64);
  return random;
}

GraphTape::Operands GraphTape::calls(std::string name, Operands operands,
                                     std::vector<Arg> args,
                                     std::vector<std::optional<Shape>> shapes,
                                     std::vector<DType> types) {
  Op op;
  op.name = std::move(name);
  op.operands = std::move(operands);
  op.args = std::move(args);
  op.phase = phase;
  op.forward = forward;
  op.module = module;
  for (size_t result = 0; result < shapes.size(); ++result) {
    if (!shapes[result]) {
      op.results.push_back(None);
      continue;
    }
    ValueId id = leaf(ValueKind::Result, "", std::move(*shapes[result]),
                      types.size() == 1 ? types[0] : types[result]);
    graph.values[id].producer = static_cast<OpId>(graph.ops.size());
    graph.values[id].result = static_cast<int>(result);
    op.results.push_back(id);
  }
  graph.ops.push_back(op);
  return op.results;
}

ValueId GraphTape::call(std::string name, Operands operands,
                        std::vector<Arg> args, Shape shape,
                        std::optional<DType> resultType) {
  DType own = resultType         ? *resultType
              : operands.empty() ? type
                                 : typeOf(operands[0]);
  return calls(std::move(name), std::move(operands), std::move(args),
               {std::move(shape)}, {own})[0];
}

void GraphTape::record(ValueId result, std::function<void(ValueId)> write) {
  backward.push_back([this, result, module = module, write = std::move(write)] {
    auto gradient = gradients.find(result);
    if (gradient == gradients.end())
      return;
    this->module = module;
    phase = Phase::Backward;
    forward = graph.values[result].producer;
    write(gradient->second);
  });
}

void GraphTape::accumulate(ValueId primal, ValueId cotangent) {
  graph.values[cotangent].cotangentOf.push_back(primal);
  if (graph.values[primal].kind == ValueKind::Parameter) {
    for (Parameter &parameter : graph.parameters)
      if (parameter.value == primal)
        parameter.gradients.push_back(cotangent);
    return;
  }
  auto [position, isFirst] = gradients.try_emplace(primal, cotangent);
  if (isFirst)
    return;
  OpId own = std::exchange(forward, None);
  position->second = call("aten::add.Tensor", {position->second, cotangent},
                          {arg0, arg1, int64_t(1)}, shapeOf(primal));
  graph.values[position->second].cotangentOf.push_back(primal);
  forward = own;
}

ValueId GraphTape::viewCall(ValueId x, Shape shape) {
  return call("aten::view", {x}, {arg0, ResultSizes{0}}, std::move(shape));
}

ValueId GraphTape::matrixTranspose(ValueId x) {
  return call("aten::t", {x}, {arg0}, {shapeOf(x)[1], shapeOf(x)[0]});
}

ValueId GraphTape::mm(ValueId a, ValueId b) {
  return call("aten::mm", {a, b}, {arg0, arg1}, {shapeOf(a)[0], shapeOf(b)[1]});
}

ValueId GraphTape::mulCall(ValueId a, ValueId b) {
  Shape result =
      shapeOf(a).size() >= shapeOf(b).size() ? shapeOf(a) : shapeOf(b);
  if (shapeOf(a).size() == shapeOf(b).size())
    for (size_t dim = 0; dim < result.size(); ++dim)
      result[dim] = std::max(shapeOf(a)[dim], shapeOf(b)[dim]);
  return call("aten::mul.Tensor", {a, b}, {arg0, arg1}, result);
}

/// Sums the dims that broadcasting added or stretched.
ValueId GraphTape::sumTo(ValueId x, Shape shape) {
  const Shape full = shapeOf(x);
  if (full == shape)
    return x;
  Shape kept = full;
  std::vector<int64_t> dims;
  size_t added = full.size() - shape.size();
  for (size_t dim = 0; dim < full.size(); ++dim)
    if (dim < added || (shape[dim - added] == 1 && full[dim] != 1)) {
      dims.push_back(static_cast<int64_t>(dim));
      kept[dim] = 1;
    }
  if (dims.empty())
    return viewCall(x, shape);
  ValueId sum =
      call("aten::sum.dim_IntList", {x}, {arg0, dims, true, {}}, kept);
  return kept == shape ? sum : viewCall(sum, shape);
}

ValueId GraphTape::castCall(ValueId x, DType type) {
  return call("aten::_to_copy", {x}, {arg0, type, {}, {}, {}, false, {}},
              shapeOf(x), type);
}

ValueId GraphTape::cast(ValueId x, DType to) {
  if (typeOf(x) == to)
    return x;
  ValueId y = castCall(x, to);
  record(y, [=, this](ValueId g) { accumulate(x, castCall(g, typeOf(x))); });
  return y;
}

ValueId GraphTape::arange(int64_t size) {
  return call("aten::arange", {}, {size, DType::Int64, {}, {}, {}}, {size},
              DType::Int64);
}

ValueId GraphTape::embedding(ValueId table, ValueId ids) {
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

ValueId GraphTape::view(ValueId x, Shape shape, bool isCopiedBack) {
  ValueId y = viewCall(x, std::move(shape));
  record(y, [=, this](ValueId g) {
    if (isCopiedBack)
      g = call("aten::clone", {g}, {arg0, {}}, shapeOf(g));
    accumulate(x, viewCall(g, shapeOf(x)));
  });
  return y;
}

ValueId GraphTape::transposeCall(ValueId x, int64_t a, int64_t b) {
  Shape shape = shapeOf(x);
  std::swap(shape[a], shape[b]);
  return call("aten::transpose.int", {x}, {arg0, a, b}, shape);
}

ValueId GraphTape::transpose(ValueId x, int64_t a, int64_t b) {
  ValueId y = transposeCall(x, a, b);
  record(y, [=, this](ValueId g) { accumulate(x, transposeCall(g, a, b)); });
  return y;
}

ValueId GraphTape::add(ValueId a, ValueId b) {
  ValueId y =
      call("aten::add.Tensor", {a, b}, {arg0, arg1, int64_t(1)}, shapeOf(a));
  record(y, [=, this](ValueId g) {
    accumulate(a, g);
    accumulate(b, sumTo(g, shapeOf(b)));
  });
  return y;
}

ValueId GraphTape::mul(ValueId a, ValueId b) {
  ValueId y = mulCall(a, b);
  record(y, [=, this](ValueId g) {
    for (auto [one, other] : {std::pair(a, b), std::pair(b, a)}) {
      ValueKind kind = graph.values[one].kind;
      if (kind == ValueKind::Constant || kind == ValueKind::Input)
        continue;
      accumulate(one, sumTo(mulCall(g, other), shapeOf(one)));
    }
  });
  return y;
}

ValueId GraphTape::unary(const std::string &name, ValueId x,
                         const std::string &backwardName,
                         std::vector<Arg> extra) {
  std::vector<Arg> args = {arg0}, backwardArgs = {arg0, arg1};
  args.insert(args.end(), extra.begin(), extra.end());
  backwardArgs.insert(backwardArgs.end(), extra.begin(), extra.end());
  ValueId y = call(name, {x}, args, shapeOf(x));
  record(y, [=, this](ValueId g) {
    accumulate(x, call(backwardName, {g, x}, backwardArgs, shapeOf(x)));
  });
  return y;
}

ValueId GraphTape::gelu(ValueId x) {
  return unary("aten::gelu", x, "aten::gelu_backward", {std::string("tanh")});
}

ValueId GraphTape::silu(ValueId x) {
  return unary("aten::silu", x, "aten::silu_backward", {});
}

ValueId GraphTape::dropout(ValueId x, double probability) {
  if (probability == 0)
    return x;
  Operands y = calls("monarch::dropout", {x, randomLeaf()},
                     {arg0, arg1, probability, int64_t(0)},
                     {shapeOf(x), shapeOf(x)}, {typeOf(x), DType::Bool});
  record(y[0], [=, this](ValueId g) {
    accumulate(x, call("monarch::dropout_backward", {g, y[1]},
                       {arg0, arg1, 1 / (1 - probability)}, shapeOf(x)));
  });
  return y[0];
}

ValueId GraphTape::linear(ValueId x, ValueId weight, ValueId bias) {
  const Shape outer(shapeOf(x).begin(), shapeOf(x).end() - 1);
  int64_t rows = 1;
  for (int64_t size : outer)
    rows *= size;
  const int64_t features = shapeOf(weight)[0];
  ValueId wt = matrixTranspose(weight);
  record(wt, [=, this](ValueId g) { accumulate(weight, matrixTranspose(g)); });
  ValueId flat = outer.size() == 1 ? x : view(x, {rows, shapeOf(weight)[1]});
  ValueId y = bias == None
                  ? mm(flat, wt)
                  : call("aten::addmm", {bias, flat, wt},
                         {arg0, arg1, arg2, 1.0, 1.0}, {rows, features});
  record(y, [=, this](ValueId g) {
    // addmm's own backward makes the input's gradient first, mm's last.
    if (bias != None)
      accumulate(flat, mm(g, matrixTranspose(wt)));
    accumulate(wt, matrixTranspose(mm(matrixTranspose(g), flat)));
    if (bias == None)
      accumulate(flat, mm(g, matrixTranspose(wt)));
    if (bias != None)
      accumulate(bias, sumTo(g, {features}));
  });
  Shape shape = outer;
  shape.push_back(features);
  return outer.size() == 1 ? y : view(y, shape);
}

ValueId GraphTape::bmm(ValueId a, ValueId b) {
  auto write = [this](ValueId x, ValueId y) {
    return call("aten::bmm", {x, y}, {arg0, arg1},
                {shapeOf(x)[0], shapeOf(x)[1], shapeOf(y)[2]});
  };
  ValueId y = write(a, b);
  record(y, [=, this](ValueId g) {
    accumulate(b, write(transposeCall(a, 1, 2), g));
    accumulate(a, write(g, transposeCall(b, 1, 2)));
  });
  return y;
}

ValueId GraphTape::slice(ValueId x, int64_t dim, int64_t begin, int64_t end) {
  Shape part = shapeOf(x);
  part[dim] = end - begin;
  ValueId y = call("aten::slice.Tensor", {x},
                   {arg0, dim, begin, end, int64_t(1)}, part);
  record(y, [=, this](ValueId g) {
    accumulate(x, call("aten::slice_backward", {g},
                       {arg0, ResultSizes{0}, dim, begin, end, int64_t(1)},
                       shapeOf(x)));
  });
  return y;
}

GraphTape::Operands GraphTape::split(ValueId x, Shape sizes, int64_t dim) {
  std::vector<std::optional<Shape>> shapes;
  for (int64_t size : sizes) {
    shapes.emplace_back(shapeOf(x));
    (*shapes.back())[dim] = size;
  }
  Operands parts = calls("aten::split_with_sizes", {x},
                         {arg0, ResultsSizes{static_cast<int>(dim)}, dim},
                         shapes, {typeOf(x)});
  record(parts[0], [=, this](ValueId) {
    Operands cotangents;
    OperandListArg list;
    for (ValueId part : parts) {
      list.indices.push_back(static_cast<int>(cotangents.size()));
      cotangents.push_back(gradients.at(part));
    }
    accumulate(x, call("aten::cat", cotangents, {list, dim}, shapeOf(x)));
  });
  return parts;
}

} // namespace monarch::planner
