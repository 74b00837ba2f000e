//===- SpatialShapes.cpp - convolution and pooling ------------------------===//
//
// One size a spatial dim: what one number says of all dims is repeated.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/capture/ShapeRules.h"

#include <ATen/ExpandUtils.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

namespace monarch {

namespace {

using Arguments = std::vector<c10::IValue>;
using Results = torch::jit::Stack;

int64_t at(const std::vector<int64_t> &list, size_t dim) {
  return list.size() == 1 ? list[0] : list.at(dim);
}

/// convolution(x, weight, bias, stride, padding, dilation, transposed,
/// output_padding, groups).
void convolution(const Arguments &args, Results &results) {
  const at::Tensor &x = args[0].toTensor(), &weight = args[1].toTensor();
  const auto stride = args[3].toIntVector(), padding = args[4].toIntVector(),
             dilation = args[5].toIntVector(), outer = args[7].toIntVector();
  const bool isTransposed = args[6].toBool();
  const int64_t groups = args[8].toInt();
  TORCH_CHECK(x.dim() == weight.dim() && x.dim() >= 3, "convolution of ",
              x.sizes(), " with ", weight.sizes());
  TORCH_CHECK(groups > 0 &&
                  x.size(1) ==
                      (isTransposed ? weight.size(0) : weight.size(1) * groups),
              "convolution of ", x.sizes(), " with ", weight.sizes(), " in ",
              groups, " groups");
  std::vector<int64_t> sizes = {
      x.size(0), isTransposed ? weight.size(1) * groups : weight.size(0)};
  for (int64_t dim = 2; dim < x.dim(); ++dim) {
    const size_t i = static_cast<size_t>(dim - 2);
    const int64_t reach = at(dilation, i) * (weight.size(dim) - 1);
    const int64_t size =
        isTransposed
            ? (x.size(dim) - 1) * at(stride, i) - 2 * at(padding, i) + reach +
                  at(outer, i) + 1
            : (x.size(dim) + 2 * at(padding, i) - reach - 1) / at(stride, i) +
                  1;
    TORCH_CHECK(size > 0, "convolution of ", x.sizes(), " with ",
                weight.sizes(), " leaves nothing");
    sizes.push_back(size);
  }
  results.emplace_back(emptyOf(sizes, x));
}

/// convolution_backward(gradient, x, weight, bias_sizes, ..., output_mask).
void convolutionBackward(const Arguments &args, Results &results) {
  const at::Tensor &gradient = args[0].toTensor();
  const auto mask = args.back().toBoolList();
  for (size_t operand : {1, 2}) {
    const at::Tensor &x = args[operand].toTensor();
    results.emplace_back(mask.get(operand - 1) ? emptyOf(x.sizes(), x)
                                               : at::Tensor());
  }
  results.emplace_back(mask.get(2) ? emptyOf({gradient.size(1)}, gradient)
                                   : at::Tensor());
}

/// _adaptive_avg_pool2d(x, output_size), 3d alike.
void adaptivePool(const Arguments &args, Results &results) {
  const at::Tensor &x = args[0].toTensor();
  const auto spatial = args[1].toIntVector();
  std::vector<int64_t> sizes = x.sizes().vec();
  std::copy(spatial.begin(), spatial.end(), sizes.end() - spatial.size());
  results.emplace_back(emptyOf(sizes, x));
}

/// grid_sampler_2d(x, grid, ...).
void gridSampler(const Arguments &args, Results &results) {
  const at::Tensor &x = args[0].toTensor(), &grid = args[1].toTensor();
  std::vector<int64_t> sizes = {x.size(0), x.size(1)};
  for (int64_t dim = 1; dim + 1 < grid.dim(); ++dim)
    sizes.push_back(grid.size(dim));
  results.emplace_back(emptyOf(sizes, x));
}

/// grid_sampler_2d_backward(gradient, x, grid, ..., output_mask): the gradient
/// of the grid comes whatever the mask says.
void gridSamplerBackward(const Arguments &args, Results &results) {
  const at::Tensor &x = args[1].toTensor(), &grid = args[2].toTensor();
  results.emplace_back(args.back().toBoolList().get(0) ? emptyOf(x.sizes(), x)
                                                       : at::Tensor());
  results.emplace_back(emptyOf(grid.sizes(), grid));
}

} // namespace

void addSpatialShapes(ShapeTable &table) {
  table["aten::convolution"] = convolution;
  table["aten::convolution_backward"] = convolutionBackward;
  table["aten::_adaptive_avg_pool2d"] = adaptivePool;
  table["aten::_adaptive_avg_pool3d"] = adaptivePool;
  table["aten::_adaptive_avg_pool2d_backward"] = likeOperand<1>;
  table["aten::_adaptive_avg_pool3d_backward"] = likeOperand<1>;
  for (const char *name : {"aten::grid_sampler_2d", "aten::grid_sampler_3d"})
    table[name] = gridSampler;
  for (const char *name :
       {"aten::grid_sampler_2d_backward", "aten::grid_sampler_3d_backward"})
    table[name] = gridSamplerBackward;
}

} // namespace monarch
