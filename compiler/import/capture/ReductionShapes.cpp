//===- ReductionShapes.cpp - reductions and losses ------------------------===//
//
// A loss is a scalar unless its reduction is none.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/capture/ShapeRules.h"

#include <ATen/ExpandUtils.h>
#include <ATen/core/Reduction.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <algorithm>

namespace monarch {

namespace {

using Arguments = std::vector<c10::IValue>;
using Results = torch::jit::Stack;

/// A reduction over `dims` (none: all).
at::Tensor reduced(const at::Tensor &x, const c10::IValue &dims,
                   bool keepsDims) {
  std::vector<bool> isReduced(x.dim(), dims.isNone());
  if (!dims.isNone()) {
    const auto list = dims.toIntVector();
    if (list.empty())
      isReduced.assign(x.dim(), true);
    for (int64_t dim : list)
      isReduced[at::maybe_wrap_dim(dim, x.dim())] = true;
  }
  std::vector<int64_t> sizes;
  for (int64_t dim = 0; dim < x.dim(); ++dim)
    if (!isReduced[dim])
      sizes.push_back(x.size(dim));
    else if (keepsDims)
      sizes.push_back(1);
  return emptyOf(sizes, x);
}

/// var.correction(x, dims, *, correction, keepdim), std alike.
void variance(const Arguments &args, Results &results) {
  results.emplace_back(
      reduced(args[0].toTensor(), args[1], args.back().toBool()));
}

void varianceAndMean(const Arguments &args, Results &results) {
  variance(args, results);
  variance(args, results);
}

/// histc(x, bins, min, max).
void histogram(const Arguments &args, Results &results) {
  results.emplace_back(emptyOf({args[1].toInt()}, args[0].toTensor()));
}

void product(const Arguments &args, Results &results) {
  const at::Tensor &x = args[0].toTensor();
  auto type = args[1].isNone() ? x.scalar_type() : args[1].toScalarType();
  if (args[1].isNone() && at::isIntegralType(type, /*includeBool=*/true))
    type = at::kLong;
  results.emplace_back(at::empty({}, x.options().dtype(type)));
}

/// A loss of (x, target, ...) with the reduction at this argument.
template <size_t Reduction>
void elementwiseLoss(const Arguments &args, Results &results) {
  const at::Tensor &x = args[0].toTensor();
  const at::Tensor &target = args[1].toTensor();
  results.emplace_back(
      args[Reduction].toInt() == at::Reduction::None
          ? emptyOf(at::infer_size(x.sizes(), target.sizes()), x)
          : emptyOf({}, x));
}

/// mse_loss_backward(gradient, x, target, reduction), smooth_l1_loss alike.
void elementwiseLossBackward(const Arguments &args, Results &results) {
  const at::Tensor &x = args[1].toTensor();
  results.emplace_back(
      emptyOf(at::infer_size(x.sizes(), args[2].toTensor().sizes()), x));
}

/// nll_loss2d_forward(x [N,C,H,W], target [N,H,W], weight, reduction, ignored).
void nllLoss2d(const Arguments &args, Results &results) {
  const at::Tensor &x = args[0].toTensor();
  results.emplace_back(args[3].toInt() == at::Reduction::None
                           ? emptyOf(args[1].toTensor().sizes(), x)
                           : emptyOf({}, x));
  results.emplace_back(emptyOf({}, x));
}

} // namespace

void addReductionShapes(ShapeTable &table) {
  table["aten::var.correction"] = variance;
  table["aten::std.correction"] = variance;
  table["aten::var_mean.correction"] = varianceAndMean;
  table["aten::std_mean.correction"] = varianceAndMean;
  table["aten::histc"] = histogram;
  table["aten::prod"] = product;
  table["aten::binary_cross_entropy"] = elementwiseLoss<3>;
  table["aten::binary_cross_entropy_backward"] = likeOperand<1>;
  table["aten::binary_cross_entropy_with_logits"] = elementwiseLoss<4>;
  table["aten::mse_loss_backward"] = elementwiseLossBackward;
  table["aten::smooth_l1_loss_backward"] = elementwiseLossBackward;
  table["aten::huber_loss"] = elementwiseLoss<2>;
  table["aten::huber_loss_backward"] = elementwiseLossBackward;
  table["aten::nll_loss2d_forward"] = nllLoss2d;
  table["aten::nll_loss2d_backward"] = likeOperand<1>;
}

} // namespace monarch
