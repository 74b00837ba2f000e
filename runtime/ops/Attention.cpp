//===- Attention.cpp - attention on CPU and its shapes --------------------===//
//
// PyTorch's CPU flash kernel where it is right, else spelled out with scores in
// float32 (float64 for float64). Both leave the same outputs, so forward and
// backward may take different paths. The flash kernel is wrong, without an
// error, for a float32 mask under float64 queries and for a last dim whose
// stride is not 1: both are converted first.
//
//===----------------------------------------------------------------------===//
#include "runtime/ops/Kernels.h"

#include <ATen/ATen.h>

#include <limits>

namespace monarch {

namespace {

constexpr double NegativeInfinity = -std::numeric_limits<double>::infinity();

at::ScalarType scoreType(at::ScalarType type) {
  return type == at::kDouble ? at::kDouble : at::kFloat;
}

bool hasMask(const OptionalTensor &mask) { return mask && mask->defined(); }

void check(const at::Tensor &q, const at::Tensor &k, const at::Tensor &v) {
  TORCH_CHECK(q.dim() == 4 && k.dim() == 4 && v.dim() == 4,
              "attention: q, k and v must have 4 dims");
  TORCH_CHECK(q.size(0) == k.size(0) && q.size(0) == v.size(0) &&
                  q.size(1) == k.size(1) && q.size(1) == v.size(1) &&
                  q.size(3) == k.size(3) && k.size(2) == v.size(2),
              "attention: batch, heads, width or rows of q, k and v differ");
}

/// [B,H,rows,width] laid out as (B,rows,H,width).
at::Tensor emptyByRows(const at::Tensor &like, int64_t rows, int64_t width,
                       at::ScalarType type) {
  return at::empty({like.size(0), rows, like.size(1), width},
                   like.options().dtype(type))
      .transpose(1, 2);
}

at::Tensor byRows(const at::Tensor &x, at::ScalarType type) {
  return emptyByRows(x, x.size(2), x.size(3), type).copy_(x);
}

bool isFlashRight(const at::Tensor &q, const at::Tensor &k, const at::Tensor &v,
                  const OptionalTensor &mask) {
  return q.size(3) == v.size(3) && q.numel() > 0 && k.numel() > 0 &&
         (!hasMask(mask) || mask->dim() == 2 || mask->dim() == 4);
}

OptionalTensor additiveMask(const OptionalTensor &mask, const at::Tensor &q) {
  if (!hasMask(mask))
    return std::nullopt;
  if (mask->scalar_type() == at::kBool)
    return at::zeros(mask->sizes(), q.options())
        .masked_fill_(mask->logical_not(), NegativeInfinity);
  return mask->to(q.scalar_type());
}

at::Tensor unitStride(const at::Tensor &x) {
  return x.stride(-1) == 1 ? x : x.contiguous();
}

at::Tensor scores(const at::Tensor &q, const at::Tensor &k,
                  const OptionalTensor &mask, bool isCausal, double scale) {
  const at::ScalarType type = scoreType(q.scalar_type());
  at::Tensor s = at::matmul(q.to(type) * scale, k.to(type).transpose(-2, -1));
  if (hasMask(mask))
    s = mask->scalar_type() == at::kBool
            ? s.masked_fill(mask->logical_not(), NegativeInfinity)
            : s + mask->to(type);
  if (isCausal)
    s.masked_fill_(
        at::ones({q.size(2), k.size(2)}, q.options().dtype(at::kBool)).triu(1),
        NegativeInfinity);
  return s;
}

/// 0, as from the flash kernel, in rows that see nothing.
at::Tensor finiteLogSumExp(const at::Tensor &s) {
  at::Tensor rows = at::logsumexp(s, -1);
  return rows.masked_fill_(rows == NegativeInfinity, 0.0);
}

at::Tensor probabilities(const at::Tensor &s, const at::Tensor &logsumexp) {
  return at::exp(s - logsumexp.unsqueeze(-1));
}

} // namespace

Tensor2 attentionCpu(const at::Tensor &q, const at::Tensor &k,
                     const at::Tensor &v, const OptionalTensor &mask,
                     bool isCausal, double scale) {
  check(q, k, v);
  if (isFlashRight(q, k, v, mask)) {
    auto [out, logsumexp] = at::_scaled_dot_product_flash_attention_for_cpu(
        unitStride(q), unitStride(k), unitStride(v), 0.0, isCausal,
        additiveMask(mask, q), scale);
    // The kernel lays out as q is; merging the heads would copy later.
    bool isByRows = out.transpose(1, 2).is_contiguous();
    return {isByRows ? out : byRows(out, out.scalar_type()), logsumexp};
  }
  at::Tensor s = scores(q, k, mask, isCausal, scale);
  at::Tensor logsumexp = finiteLogSumExp(s);
  at::Tensor p = probabilities(s, logsumexp);
  return {byRows(at::matmul(p, v.to(p.scalar_type())), q.scalar_type()),
          logsumexp};
}

Tensor4 attentionBackwardCpu(const at::Tensor &gradOut, const at::Tensor &q,
                             const at::Tensor &k, const at::Tensor &v,
                             const OptionalTensor &mask, const at::Tensor &out,
                             const at::Tensor &logsumexp, bool isCausal,
                             double scale, std::array<bool, 4> need) {
  check(q, k, v);
  auto needed = [&](int i, const at::Tensor &t) {
    return need[i] ? t : at::Tensor();
  };
  if (isFlashRight(q, k, v, mask) && !need[3]) {
    auto [dq, dk, dv] =
        at::_scaled_dot_product_flash_attention_for_cpu_backward(
            unitStride(gradOut), unitStride(q), unitStride(k), unitStride(v),
            out, logsumexp, 0.0, isCausal, additiveMask(mask, q), scale);
    return {needed(0, dq), needed(1, dk), needed(2, dv), {}};
  }
  const at::ScalarType type = scoreType(q.scalar_type());
  at::Tensor p =
      probabilities(scores(q, k, mask, isCausal, scale), logsumexp.to(type));
  at::Tensor g = gradOut.to(type);
  at::Tensor dv = at::matmul(p.transpose(-2, -1), g);
  at::Tensor dp = at::matmul(g, v.to(type).transpose(-2, -1));
  // sum(p * dp), not sum(g * out): out is rounded to the type of q.
  at::Tensor ds = p * (dp - (p * dp).sum(-1, /*keepdim=*/true));
  at::Tensor dq = at::matmul(ds, k.to(type)) * scale;
  at::Tensor dk = at::matmul(ds.transpose(-2, -1), q.to(type)) * scale;
  at::Tensor dmask;
  if (need[3])
    dmask = at::sum_to(ds, mask->sizes()).to(mask->scalar_type());
  return {need[0] ? byRows(dq, q.scalar_type()) : at::Tensor(),
          need[1] ? byRows(dk, k.scalar_type()) : at::Tensor(),
          need[2] ? byRows(dv, v.scalar_type()) : at::Tensor(), dmask};
}

Tensor2 attentionMeta(const at::Tensor &q, const at::Tensor &k,
                      const at::Tensor &v, const OptionalTensor &, bool,
                      double) {
  check(q, k, v);
  return {emptyByRows(q, q.size(2), v.size(3), q.scalar_type()),
          at::empty({q.size(0), q.size(1), q.size(2)},
                    q.options().dtype(scoreType(q.scalar_type())))};
}

Tensor4 attentionBackwardMeta(const at::Tensor &, const at::Tensor &q,
                              const at::Tensor &k, const at::Tensor &v,
                              const OptionalTensor &mask, const at::Tensor &,
                              const at::Tensor &, bool, double,
                              std::array<bool, 4> need) {
  check(q, k, v);
  auto like = [&](int i, const at::Tensor &t) {
    return need[i] ? emptyByRows(t, t.size(2), t.size(3), t.scalar_type())
                   : at::Tensor();
  };
  return {like(0, q), like(1, k), like(2, v),
          need[3] ? at::empty(mask->sizes(), mask->options()) : at::Tensor()};
}

} // namespace monarch
