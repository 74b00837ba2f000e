//===- GatedOps.cpp - a library of PyTorch ops, as a user has them --------===//
//
// gated(x [n,d], w [f,d], scale) = scale * sigmoid(x w^T), and its derivative.
// Shares nothing with the project.
//
//===----------------------------------------------------------------------===//
#include <ATen/ATen.h>
#include <torch/library.h>

namespace {

at::Tensor gated(const at::Tensor &x, const at::Tensor &w, double scale) {
  return at::sigmoid(at::mm(x, w.t())) * scale;
}

std::tuple<at::Tensor, at::Tensor> gatedBackward(const at::Tensor &gradient,
                                                 const at::Tensor &x,
                                                 const at::Tensor &w,
                                                 double scale) {
  at::Tensor y = at::sigmoid(at::mm(x, w.t()));
  at::Tensor inner = gradient * y * (1 - y) * scale;
  return {at::mm(inner, w), at::mm(inner.t(), x)};
}

at::Tensor gatedMeta(const at::Tensor &x, const at::Tensor &w, double) {
  return x.new_empty({x.size(0), w.size(0)});
}

std::tuple<at::Tensor, at::Tensor> gatedBackwardMeta(const at::Tensor &,
                                                     const at::Tensor &x,
                                                     const at::Tensor &w,
                                                     double) {
  return {at::empty_like(x), at::empty_like(w)};
}

} // namespace

TORCH_LIBRARY(gatedlib, library) {
  library.def("gated(Tensor x, Tensor w, float scale) -> Tensor");
  library.def("gated_backward(Tensor gradient, Tensor x, Tensor w, float scale)"
              " -> (Tensor, Tensor)");
}

TORCH_LIBRARY_IMPL(gatedlib, CPU, library) {
  library.impl("gated", gated);
  library.impl("gated_backward", gatedBackward);
}

TORCH_LIBRARY_IMPL(gatedlib, Meta, library) {
  library.impl("gated", gatedMeta);
  library.impl("gated_backward", gatedBackwardMeta);
}
