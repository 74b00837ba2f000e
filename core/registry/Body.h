//===- Body.h - writing local bodies --------------------------------------===//
//
// Private to this folder. Short names for the ATen calls that local bodies are
// made of, with the shapes of their results: sizes follow broadcasting, where
// only a size that is 1 on every rank repeats. Every call makes a tensor of its
// own; so its result may be reduced in place.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/registry/Lowering.h"

#include <limits>

namespace monarch {

inline constexpr double NegativeInfinity =
    -std::numeric_limits<double>::infinity();

class Body {
public:
  explicit Body(Lowering &lowering) : writer(lowering.writer) {}

  std::vector<Expr> shape(Local x) const { return writer[x].shape; }
  DType type(Local x) const { return writer[x].type; }

  Local add(Local a, Local b) { return binary("aten::add.Tensor", a, b, true); }
  Local sub(Local a, Local b) { return binary("aten::sub.Tensor", a, b, true); }
  Local mul(Local a, Local b) {
    return binary("aten::mul.Tensor", a, b, false);
  }
  Local mul(Local x, double number);
  Local add(Local x, double number);
  /// By a count that is the same on every rank.
  Local divide(Local x, int64_t count);
  Local exp(Local x) { return unary("aten::exp", x); }
  Local log(Local x) { return unary("aten::log", x); }
  Local rsqrt(Local x) { return unary("aten::rsqrt", x); }
  Local logicalNot(Local x);
  /// x <op> number, as bool: "aten::eq.Scalar", ...
  Local compare(const std::string &name, Local x, double number);
  Local greater(Local a, Local b);
  Local maskedFill(Local x, Local mask, double number);
  /// Casts where the type differs.
  Local cast(Local x, DType type);
  /// A tensor of its own, contiguous.
  Local copy(Local x);
  Local full(std::vector<Expr> shape, double number, DType type);

  Local sum(Local x, const std::vector<int64_t> &dims, bool keepDims);
  Local logSumExp(Local x, const std::vector<int64_t> &dims, bool keepDims);
  /// From those of the ranks on these axes, that of all; -inf where all are.
  Local allReduceLogSumExp(Local own, const std::vector<int> &axes);
  /// Product of the last two dims; the others are equal. Either factor may be
  /// taken transposed.
  Local matmul(Local a, Local b, bool transposeA = false,
               bool transposeB = false);
  Local transposed(Local x, int64_t a, int64_t b);
  Local view(Local x, std::vector<Expr> shape);
  Local unsqueeze(Local x, int64_t dim);
  /// Rows of x along a dim, in the order of a one-dimensional index.
  Local indexSelect(Local x, int64_t dim, Local index);

  Local allReduceSum(Local x, const std::vector<int> &axes) {
    return writer.allReduce(x, axes, "sum");
  }
  Local allReduceMax(Local x, const std::vector<int> &axes) {
    return writer.allReduce(x, axes, "max");
  }

private:
  Local unary(const std::string &name, Local x);
  /// Sums take a factor alpha, left at 1.
  Local binary(const std::string &name, Local a, Local b, bool hasAlpha);
  std::vector<Expr> broadcastShape(Local a, Local b) const;
  std::vector<Expr> reducedShape(Local x, const std::vector<int64_t> &dims,
                                 bool keepDims) const;

  RoleWriter &writer;
};

/// The type in which values of this type are summed and reduced.
DType accumulationType(DType type);

} // namespace monarch
