//===- Body.cpp - calls of local bodies -----------------------------------===//
//
// Arguments are spelled in schema order, defaults included.
//
//===----------------------------------------------------------------------===//
#include "core/registry/Body.h"

#include <algorithm>
#include <cassert>

namespace monarch {

DType accumulationType(DType type) {
  return type == DType::Float64 || !isFloating(type) || isComplex(type)
             ? type
             : DType::Float32;
}

namespace {

/// A number of this type: integers stay integers.
CallArg scalar(DType type, double number) {
  if (isFloating(type))
    return number;
  return Expr::constant(static_cast<int64_t>(number));
}

std::vector<Expr> constants(const std::vector<int64_t> &numbers) {
  std::vector<Expr> exprs;
  for (int64_t number : numbers)
    exprs.push_back(Expr::constant(number));
  return exprs;
}

} // namespace

std::vector<Expr> Body::broadcastShape(Local a, Local b) const {
  std::vector<Expr> first = shape(a), second = shape(b);
  if (first.size() < second.size())
    std::swap(first, second);
  size_t shift = first.size() - second.size();
  for (size_t dim = 0; dim < second.size(); ++dim)
    if (first[dim + shift] == Expr::constant(1))
      first[dim + shift] = second[dim];
  return first;
}

Local Body::unary(const std::string &name, Local x) {
  return writer.call(name, {x}, {OperandArg{0}}, type(x), shape(x));
}

Local Body::binary(const std::string &name, Local a, Local b, bool hasAlpha) {
  std::vector<CallArg> args = {OperandArg{0}, OperandArg{1}};
  if (hasAlpha)
    args.push_back(Expr::constant(1));
  return writer.call(name, {a, b}, args, type(a), broadcastShape(a, b));
}

Local Body::mul(Local x, double number) {
  return writer.call("aten::mul.Scalar", {x},
                     {OperandArg{0}, scalar(type(x), number)}, type(x),
                     shape(x));
}

Local Body::add(Local x, double number) {
  return writer.call(
      "aten::add.Scalar", {x},
      {OperandArg{0}, scalar(type(x), number), Expr::constant(1)}, type(x),
      shape(x));
}

Local Body::divide(Local x, int64_t count) {
  return writer.call("aten::div.Scalar", {x},
                     {OperandArg{0}, static_cast<double>(count)}, type(x),
                     shape(x));
}

Local Body::logicalNot(Local x) {
  return writer.call("aten::logical_not", {x}, {OperandArg{0}}, DType::Bool,
                     shape(x));
}

Local Body::compare(const std::string &name, Local x, double number) {
  return writer.call(name, {x}, {OperandArg{0}, scalar(type(x), number)},
                     DType::Bool, shape(x));
}

Local Body::greater(Local a, Local b) {
  return writer.call("aten::gt.Tensor", {a, b}, {OperandArg{0}, OperandArg{1}},
                     DType::Bool, broadcastShape(a, b));
}

Local Body::maskedFill(Local x, Local mask, double number) {
  return writer.call("aten::masked_fill.Scalar", {x, mask},
                     {OperandArg{0}, OperandArg{1}, scalar(type(x), number)},
                     type(x), broadcastShape(x, mask));
}

Local Body::cast(Local x, DType to) {
  if (type(x) == to)
    return x;
  return writer.call("aten::_to_copy", {x},
                     {OperandArg{0}, to, std::monostate(), std::monostate(),
                      std::monostate(), false, Expr::constant(0)},
                     to, shape(x));
}

Local Body::copy(Local x) {
  return writer.call("aten::clone", {x}, {OperandArg{0}, Expr::constant(0)},
                     type(x), shape(x));
}

Local Body::full(std::vector<Expr> shape, double number, DType type) {
  return writer.call("aten::full", {},
                     {shape, scalar(type, number), type, std::monostate(),
                      std::monostate(), std::monostate()},
                     type, shape);
}

std::vector<Expr> Body::reducedShape(Local x, const std::vector<int64_t> &dims,
                                     bool keepDims) const {
  std::vector<Expr> from = shape(x), result;
  for (size_t dim = 0; dim < from.size(); ++dim)
    if (std::find(dims.begin(), dims.end(), static_cast<int64_t>(dim)) ==
        dims.end())
      result.push_back(from[dim]);
    else if (keepDims)
      result.push_back(Expr::constant(1));
  return result;
}

Local Body::sum(Local x, const std::vector<int64_t> &dims, bool keepDims) {
  if (dims.empty())
    return x;
  return writer.call(
      "aten::sum.dim_IntList", {x},
      {OperandArg{0}, constants(dims), keepDims, std::monostate()}, type(x),
      reducedShape(x, dims, keepDims));
}

Local Body::logSumExp(Local x, const std::vector<int64_t> &dims,
                      bool keepDims) {
  return writer.call("aten::logsumexp", {x},
                     {OperandArg{0}, constants(dims), keepDims}, type(x),
                     reducedShape(x, dims, keepDims));
}

Local Body::allReduceLogSumExp(Local own, const std::vector<int> &axes) {
  if (axes.empty())
    return own;
  Local largest = allReduceMax(copy(own), axes);
  // Not -inf, which minus itself is not a number: the sum is 0 then.
  Local none = compare("aten::eq.Scalar", largest, NegativeInfinity);
  largest = maskedFill(largest, none, 0);
  Local total = allReduceSum(exp(sub(own, largest)), axes);
  return add(largest, log(total));
}

Local Body::matmul(Local a, Local b, bool transposeA, bool transposeB) {
  // Leading dims become one: the product then takes a plain batch.
  std::vector<Expr> result = shape(a);
  size_t rank = result.size();
  assert(rank == shape(b).size() && rank >= 3);
  Expr batch = Expr::constant(1);
  for (size_t dim = 0; dim + 2 < rank; ++dim)
    batch = batch * result[dim];
  auto flat = [&](Local x, bool transpose) {
    std::vector<Expr> size = shape(x);
    Local matrix = view(x, {batch, size[rank - 2], size[rank - 1]});
    return transpose ? transposed(matrix, 1, 2) : matrix;
  };
  Local left = flat(a, transposeA), right = flat(b, transposeB);
  result[rank - 2] = shape(left)[1];
  result[rank - 1] = shape(right)[2];
  Local product =
      writer.call("aten::bmm", {left, right}, {OperandArg{0}, OperandArg{1}},
                  type(a), {batch, result[rank - 2], result[rank - 1]});
  return view(product, result);
}

Local Body::transposed(Local x, int64_t a, int64_t b) {
  std::vector<Expr> result = shape(x);
  std::swap(result[a], result[b]);
  return writer.call("aten::transpose.int", {x},
                     {OperandArg{0}, Expr::constant(a), Expr::constant(b)},
                     type(x), result);
}

Local Body::view(Local x, std::vector<Expr> shape) {
  return writer.call("aten::view", {x}, {OperandArg{0}, shape}, type(x), shape);
}

Local Body::unsqueeze(Local x, int64_t dim) {
  std::vector<Expr> result = shape(x);
  result.insert(result.begin() + dim, Expr::constant(1));
  return writer.call("aten::unsqueeze", {x},
                     {OperandArg{0}, Expr::constant(dim)}, type(x), result);
}

Local Body::indexSelect(Local x, int64_t dim, Local index) {
  std::vector<Expr> result = shape(x);
  result[dim] = shape(index)[0];
  return writer.call("aten::index_select", {x, index},
                     {OperandArg{0}, Expr::constant(dim), OperandArg{1}},
                     type(x), result);
}

} // namespace monarch
