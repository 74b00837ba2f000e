//===- Dropout.cpp - dropout whose mask no split changes ------------------===//
//
// The mask is a function of seed, step, stream and the element's place in the
// global batch. Rows of the last dim are walked with one block of four words at
// a time.
//
//===----------------------------------------------------------------------===//
#include "runtime/ops/Kernels.h"
#include "runtime/ops/Philox.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <vector>

namespace monarch {

namespace {

/// Global indices of the local elements along one dim.
struct DimRows {
  int64_t size = 0;
  int64_t globalSize = 0;
  const int64_t *rows = nullptr; // null: 0, 1, 2, ...
  int64_t operator[](int64_t local) const {
    return rows != nullptr ? rows[local] : local;
  }
};

std::vector<DimRows> dimRows(at::IntArrayRef local, at::TensorList rows,
                             at::IntArrayRef sizes) {
  TORCH_CHECK(rows.size() == sizes.size() &&
                  (rows.empty() || rows.size() == local.size()),
              "dropout: rows and sizes must have one entry a dim, or none");
  std::vector<DimRows> dims(local.size());
  for (size_t i = 0; i < dims.size(); ++i) {
    dims[i] = {local[i], rows.empty() ? local[i] : sizes[i], nullptr};
    if (rows.empty())
      continue;
    TORCH_CHECK(rows[i].scalar_type() == at::kLong && rows[i].dim() == 1 &&
                    rows[i].numel() == local[i] && rows[i].is_contiguous(),
                "dropout: rows of dim ", i, " must be ", local[i],
                " contiguous int64");
    dims[i].rows = rows[i].const_data_ptr<int64_t>();
  }
  return dims;
}

void fillLastDim(bool *keep, const DimRows &dim, uint64_t base,
                 const PhiloxStream &words, uint32_t threshold) {
  uint64_t block = ~uint64_t{0};
  std::array<uint32_t, 4> lanes = {};
  for (int64_t i = 0; i < dim.size; ++i) {
    uint64_t element = base + dim[i];
    if (element / 4 != block) {
      block = element / 4;
      lanes = words(block);
    }
    keep[i] = lanes[element % 4] >= threshold;
  }
}

at::Tensor keepMask(at::IntArrayRef local, const at::Tensor &rng,
                    int64_t stream, double p, at::TensorList rows,
                    at::IntArrayRef sizes) {
  TORCH_CHECK(rng.scalar_type() == at::kLong && rng.numel() == 3 &&
                  rng.is_contiguous(),
              "dropout: rng must be int64[3]: seed, step, unit");
  at::Tensor keep = at::empty(local, at::kBool);
  if (p >= 1)
    return keep.zero_();
  std::vector<DimRows> dims = dimRows(local, rows, sizes);
  if (dims.empty())
    dims.push_back({1, 1, nullptr});
  if (keep.numel() == 0)
    return keep;
  const int64_t *state = rng.const_data_ptr<int64_t>();
  const PhiloxStream words{static_cast<uint64_t>(state[0]),
                           static_cast<uint32_t>(stream),
                           static_cast<uint32_t>(state[1])};
  uint64_t unitElements = 1;
  for (const DimRows &dim : dims)
    unitElements *= dim.globalSize;
  const uint64_t unitBase = static_cast<uint64_t>(state[2]) * unitElements;
  const DimRows &last = dims.back();
  bool *out = keep.data_ptr<bool>();
  const int64_t outer = keep.numel() / last.size;
  const int64_t grain = std::max<int64_t>(1, 16384 / last.size);
  at::parallel_for(0, outer, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      uint64_t base = 0, stride = last.globalSize;
      int64_t rest = row;
      for (size_t i = dims.size() - 1; i-- > 0;) {
        base += stride * dims[i][rest % dims[i].size];
        rest /= dims[i].size;
        stride *= dims[i].globalSize;
      }
      fillLastDim(out + row * last.size, last, unitBase + base, words,
                  dropThreshold(p));
    }
  });
  return keep;
}

at::Tensor scaled(const at::Tensor &x, const at::Tensor &mask, double p) {
  return p >= 1 ? at::zeros_like(x) : x.mul(mask).mul_(1 / (1 - p));
}

} // namespace

Tensor2 dropoutCpu(const at::Tensor &x, const at::Tensor &rng, int64_t stream,
                   double p, at::TensorList rows, at::IntArrayRef sizes) {
  at::Tensor mask = keepMask(x.sizes(), rng, stream, p, rows, sizes);
  return {scaled(x, mask, p), mask};
}

at::Tensor dropoutBackwardCpu(const at::Tensor &grad, const at::Tensor &mask,
                              double p) {
  return scaled(grad, mask, p);
}

Tensor2 dropoutMeta(const at::Tensor &x, const at::Tensor &, int64_t, double,
                    at::TensorList, at::IntArrayRef) {
  return {at::empty_like(x),
          at::empty(x.sizes(), x.options().dtype(at::kBool))};
}

at::Tensor dropoutBackwardMeta(const at::Tensor &grad, const at::Tensor &,
                               double) {
  return at::empty_like(grad);
}

} // namespace monarch
