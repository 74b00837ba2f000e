//===- GroupedMatmul.cpp - rows of each group by its own matrix, on CPU ---===//
//
// One product a group. Rows of no group give zeros.
//
//===----------------------------------------------------------------------===//
#include "runtime/ops/Kernels.h"

#include <ATen/ATen.h>

namespace monarch {

namespace {

void check(const at::Tensor &x, const at::Tensor &weight,
           const at::Tensor &ends) {
  TORCH_CHECK(x.dim() == 2 && weight.dim() == 3 && ends.dim() == 1,
              "grouped matmul: x, weight and ends must have 2, 3 and 1 dims");
  TORCH_CHECK(ends.size(0) == weight.size(0) && x.size(1) == weight.size(1),
              "grouped matmul: groups or inner dims differ");
}

/// Calls back with each group that has rows, and its range of rows.
template <typename Visit>
void eachGroup(const at::Tensor &ends, const OptionalTensor &begins,
               int64_t rows, Visit visit) {
  const at::Tensor last = ends.to(at::kLong).contiguous();
  const bool hasBegins = begins && begins->defined();
  const at::Tensor first =
      hasBegins ? begins->to(at::kLong).contiguous() : at::Tensor();
  int64_t previous = 0;
  for (int64_t group = 0; group < last.size(0); ++group) {
    const int64_t begin =
        hasBegins ? first.const_data_ptr<int64_t>()[group] : previous;
    const int64_t end = last.const_data_ptr<int64_t>()[group];
    previous = end;
    TORCH_CHECK(begin >= 0 && end <= rows, "grouped matmul: group ", group,
                " has rows ", begin, " to ", end, " of ", rows);
    if (begin < end)
      visit(group, begin, end);
  }
}

} // namespace

at::Tensor groupedMatmulCpu(const at::Tensor &x, const at::Tensor &weight,
                            const at::Tensor &ends,
                            const OptionalTensor &begins) {
  check(x, weight, ends);
  at::Tensor y = at::zeros({x.size(0), weight.size(2)}, x.options());
  eachGroup(ends, begins, x.size(0),
            [&](int64_t g, int64_t begin, int64_t end) {
              at::Tensor rows = y.slice(0, begin, end);
              at::mm_out(rows, x.slice(0, begin, end), weight.select(0, g));
            });
  return y;
}

Tensor2 groupedMatmulBackwardCpu(const at::Tensor &gradient,
                                 const at::Tensor &x, const at::Tensor &weight,
                                 const at::Tensor &ends,
                                 const OptionalTensor &begins,
                                 std::array<bool, 2> need) {
  check(x, weight, ends);
  at::Tensor dx, dweight;
  if (need[0])
    dx = at::zeros(x.sizes(), x.options());
  if (need[1])
    dweight = at::zeros(weight.sizes(), weight.options());
  eachGroup(ends, begins, x.size(0),
            [&](int64_t g, int64_t begin, int64_t end) {
              at::Tensor rows = gradient.slice(0, begin, end);
              if (need[0]) {
                at::Tensor into = dx.slice(0, begin, end);
                at::mm_out(into, rows, weight.select(0, g).t());
              }
              if (need[1]) {
                at::Tensor into = dweight.select(0, g);
                at::mm_out(into, x.slice(0, begin, end).t(), rows);
              }
            });
  return {dx, dweight};
}

at::Tensor groupedMatmulMeta(const at::Tensor &x, const at::Tensor &weight,
                             const at::Tensor &ends, const OptionalTensor &) {
  check(x, weight, ends);
  return at::empty({x.size(0), weight.size(2)}, x.options());
}

Tensor2 groupedMatmulBackwardMeta(const at::Tensor &, const at::Tensor &x,
                                  const at::Tensor &weight,
                                  const at::Tensor &ends,
                                  const OptionalTensor &,
                                  std::array<bool, 2> need) {
  check(x, weight, ends);
  return {need[0] ? at::empty(x.sizes(), x.options()) : at::Tensor(),
          need[1] ? at::empty(weight.sizes(), weight.options()) : at::Tensor()};
}

} // namespace monarch
