//===- EmbeddingBag.cpp - sums of table rows on CPU, and their shapes -----===//
//
// One result forward; what the backward needs is computed again from the ids. A
// rank that holds some rows of the table passes where each id lies among them.
//
//===----------------------------------------------------------------------===//
#include "runtime/ops/Kernels.h"

#include <ATen/ATen.h>

namespace monarch {

namespace {

constexpr int64_t Mean = 1;

bool isGiven(const OptionalTensor &tensor) {
  return tensor && tensor->defined();
}

int64_t bagCount(const at::Tensor &indices, const OptionalTensor &offsets,
                 bool includesLast) {
  if (!isGiven(offsets))
    return indices.size(0);
  return offsets->size(0) - (includesLast ? 1 : 0);
}

void check(const at::Tensor &indices, const OptionalTensor &offsets,
           int64_t mode) {
  TORCH_CHECK(mode == 0 || mode == Mean, "embedding bag: mode must be sum or "
                                         "mean");
  TORCH_CHECK(indices.dim() == (isGiven(offsets) ? 1 : 2),
              "embedding bag: ids are [bags, ids a bag], or one list with "
              "offsets");
}

/// All ids of all bags in one row.
struct Bags {
  Bags(const at::Tensor &indices, const OptionalTensor &offsets,
       bool includesLast, int64_t padding, const OptionalTensor &held) {
    const at::Tensor ids = indices.reshape(-1).to(at::kLong);
    count = bagCount(indices, offsets, includesLast);
    if (isGiven(offsets)) {
      at::Tensor ends = offsets->to(at::kLong).slice(0, 1);
      if (!includesLast)
        ends = at::cat({ends, at::full({1}, ids.numel(), at::kLong)});
      bag = at::searchsorted(ends, at::arange(ids.numel(), at::kLong),
                             /*out_int32=*/false, /*right=*/true);
      // Ids past the last end belong to no bag.
      counts = bag < count;
      bag = bag.clamp_max(std::max<int64_t>(count - 1, 0));
    } else {
      const int64_t width = indices.size(1);
      bag = at::arange(count, at::kLong).repeat_interleave(width);
      counts = at::ones({ids.numel()}, at::kBool);
    }
    if (padding >= 0)
      counts.logical_and_(ids != padding);
    row = isGiven(held) ? held->index_select(0, ids) : ids;
    reads = counts.logical_and(row >= 0);
    row = row.clamp_min(0);
  }

  /// 1 / (ids in the bag) for each id; a bag of none has no ids.
  at::Tensor inverseSizes(at::TensorOptions options) const {
    at::Tensor sizes = at::zeros({std::max<int64_t>(count, 1)}, options);
    sizes.index_add_(0, bag, counts.to(options.dtype()));
    return sizes.clamp_min_(1).reciprocal_().index_select(0, bag);
  }

  int64_t count = 0;
  /// Per id: its bag, its row among those held, whether it is one of the bag's,
  /// and whether its row is held too.
  at::Tensor bag, row, counts, reads;
};

/// What each id's row is multiplied by.
at::Tensor factors(const Bags &bags, const OptionalTensor &rowWeights,
                   int64_t mode, at::TensorOptions options) {
  at::Tensor factor = bags.reads.to(options.dtype());
  if (isGiven(rowWeights))
    factor = factor * rowWeights->reshape(-1);
  return mode == Mean ? factor * bags.inverseSizes(options) : factor;
}

} // namespace

at::Tensor embeddingBagCpu(const at::Tensor &weight, const at::Tensor &indices,
                           const OptionalTensor &offsets,
                           const OptionalTensor &rowWeights, int64_t mode,
                           bool includesLast, int64_t padding,
                           const OptionalTensor &held) {
  check(indices, offsets, mode);
  const int64_t count = bagCount(indices, offsets, includesLast);
  at::Tensor out = at::zeros({count, weight.size(1)}, weight.options());
  if (weight.numel() == 0 || indices.numel() == 0 || count == 0)
    return out;
  const Bags bags(indices, offsets, includesLast, padding, held);
  at::Tensor rows = weight.index_select(0, bags.row);
  rows.mul_(factors(bags, rowWeights, mode, weight.options()).unsqueeze(1));
  return out.index_add_(0, bags.bag, rows);
}

Tensor2 embeddingBagBackwardCpu(const at::Tensor &gradient,
                                const OptionalTensor &weight,
                                const at::Tensor &indices,
                                const OptionalTensor &offsets,
                                const OptionalTensor &rowWeights, int64_t mode,
                                bool includesLast, int64_t padding,
                                int64_t tableRows, const OptionalTensor &held,
                                std::array<bool, 2> need) {
  check(indices, offsets, mode);
  at::Tensor dweight, drowWeights;
  if (need[0])
    dweight = at::zeros({tableRows, gradient.size(1)}, gradient.options());
  if (need[1])
    drowWeights = at::zeros(indices.sizes(), gradient.options());
  if (gradient.numel() == 0 || indices.numel() == 0)
    return {dweight, drowWeights};
  const Bags bags(indices, offsets, includesLast, padding, held);
  at::Tensor perId = gradient.index_select(0, bags.bag);
  if (need[1] && weight->numel() > 0)
    drowWeights = (weight->index_select(0, bags.row) * perId)
                      .sum(1)
                      .masked_fill_(bags.reads.logical_not(), 0)
                      .view(indices.sizes());
  if (need[0] && tableRows > 0) {
    perId.mul_(
        factors(bags, rowWeights, mode, gradient.options()).unsqueeze(1));
    dweight.index_add_(0, bags.row, perId);
  }
  return {dweight, drowWeights};
}

at::Tensor embeddingBagMeta(const at::Tensor &weight, const at::Tensor &indices,
                            const OptionalTensor &offsets,
                            const OptionalTensor &, int64_t mode,
                            bool includesLast, int64_t,
                            const OptionalTensor &) {
  check(indices, offsets, mode);
  return at::empty({bagCount(indices, offsets, includesLast), weight.size(1)},
                   weight.options());
}

Tensor2
embeddingBagBackwardMeta(const at::Tensor &gradient, const OptionalTensor &,
                         const at::Tensor &indices,
                         const OptionalTensor &offsets, const OptionalTensor &,
                         int64_t mode, bool, int64_t, int64_t tableRows,
                         const OptionalTensor &, std::array<bool, 2> need) {
  check(indices, offsets, mode);
  return {need[0] ? at::empty({tableRows, gradient.size(1)}, gradient.options())
                  : at::Tensor(),
          need[1] ? at::empty(indices.sizes(), gradient.options())
                  : at::Tensor()};
}

} // namespace monarch
