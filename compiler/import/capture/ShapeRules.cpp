//===- ShapeRules.cpp - one rule an op ------------------------------------===//
//
// Results are contiguous, or like an operand, as the CPU kernels give them.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/capture/ShapeRules.h"

#include <ATen/ATen.h>
#include <ATen/ExpandUtils.h>
#include <ATen/core/LegacyTypeDispatch.h>

namespace monarch {

at::Tensor emptyOf(at::IntArrayRef sizes, const at::Tensor &like) {
  return at::empty(sizes, like.options());
}

namespace {

using Arguments = std::vector<c10::IValue>;
using Results = torch::jit::Stack;

void likeFirst(const Arguments &args, Results &results) {
  results.emplace_back(at::empty_like(args[0].toTensor()));
}

void boolLikeFirst(const Arguments &args, Results &results) {
  const at::Tensor &x = args[0].toTensor();
  results.emplace_back(at::empty_like(x, x.options().dtype(at::kBool)));
}

void boolBroadcast(const Arguments &args, Results &results) {
  results.emplace_back(at::eq(args[0].toTensor(), args[1].toTensor()));
}

void scalarLikeFirst(const Arguments &args, Results &results) {
  results.emplace_back(emptyOf({}, args[0].toTensor()));
}

void where(const Arguments &args, Results &results) {
  at::Tensor sum = at::add(args[1].toTensor(), args[2].toTensor());
  results.emplace_back(
      emptyOf(at::infer_size(args[0].toTensor().sizes(), sum.sizes()), sum));
}

void indexSelect(const Arguments &args, Results &results) {
  const at::Tensor &x = args[0].toTensor();
  std::vector<int64_t> sizes = x.sizes().vec();
  int64_t dim = args[1].toInt();
  sizes[dim < 0 ? dim + x.dim() : dim] = args[2].toTensor().numel();
  results.emplace_back(emptyOf(sizes, x));
}

void embedding(const Arguments &args, Results &results) {
  const at::Tensor &weight = args[0].toTensor();
  std::vector<int64_t> sizes = args[1].toTensor().sizes().vec();
  sizes.push_back(weight.size(1));
  results.emplace_back(emptyOf(sizes, weight));
}

void embeddingDenseBackward(const Arguments &args, Results &results) {
  const at::Tensor &gradient = args[0].toTensor();
  results.emplace_back(emptyOf({args[2].toInt(), gradient.size(-1)}, gradient));
}

void nativeLayerNorm(const Arguments &args, Results &results) {
  const at::Tensor &x = args[0].toTensor();
  std::vector<int64_t> sizes = x.sizes().vec();
  size_t normalized = args[1].toIntVector().size();
  for (size_t i = sizes.size() - normalized; i < sizes.size(); ++i)
    sizes[i] = 1;
  results.emplace_back(at::empty_like(x));
  results.emplace_back(emptyOf(sizes, x));
  results.emplace_back(emptyOf(sizes, x));
}

/// The arguments that are differentiated, by the mask at the end.
void likeMasked(const Arguments &args, Results &results,
                std::initializer_list<size_t> operands) {
  const auto mask = args.back().toBoolList();
  size_t i = 0;
  for (size_t operand : operands)
    results.emplace_back(mask.get(i++)
                             ? at::empty_like(args[operand].toTensor())
                             : at::Tensor());
}

void nativeLayerNormBackward(const Arguments &args, Results &results) {
  likeMasked(args, results, {1, 5, 6});
}

void broadcastFirstTwo(const Arguments &args, Results &results) {
  results.emplace_back(at::add(args[0].toTensor(), args[1].toTensor()));
}

/// log_sigmoid_forward(x) -> (y, buffer): the buffer is the CPU kernel's.
void logSigmoid(const Arguments &args, Results &results) {
  likeFirst(args, results);
  likeFirst(args, results);
}

/// searchsorted(sorted, values, out_int32, ...), also by a number.
void searchSorted(const Arguments &args, Results &results) {
  const at::Tensor &sorted = args[0].toTensor();
  at::IntArrayRef sizes;
  if (args[1].isTensor())
    sizes = args[1].toTensor().sizes();
  results.emplace_back(at::empty(
      sizes, sorted.options().dtype(args[2].toBool() ? at::kInt : at::kLong)));
}

/// bucketize(values, boundaries, out_int32, ...).
void bucketize(const Arguments &args, Results &results) {
  const at::Tensor &boundaries = args[1].toTensor();
  results.emplace_back(at::empty(
      args[0].toTensor().sizes(),
      boundaries.options().dtype(args[2].toBool() ? at::kInt : at::kLong)));
}

/// As the CPU kernel of mode max gives them.
void embeddingBag(const Arguments &args, Results &results) {
  const at::Tensor &weight = args[0].toTensor();
  const at::Tensor &indices = args[1].toTensor();
  const at::Tensor &offsets = args[2].toTensor();
  const int64_t bags = offsets.size(0) - (args[7].toBool() ? 1 : 0);
  results.emplace_back(emptyOf({bags, weight.size(1)}, weight));
  results.emplace_back(emptyOf(indices.sizes(), indices));
  results.emplace_back(emptyOf({bags}, indices));
  results.emplace_back(emptyOf({bags, weight.size(1)}, indices));
}

/// _embedding_bag_dense_backward(gradient, indices, offset2bag, bag_size,
/// maximum_indices, num_weights, ...).
void embeddingBagBackward(const Arguments &args, Results &results) {
  const at::Tensor &gradient = args[0].toTensor();
  results.emplace_back(emptyOf({args[5].toInt(), gradient.size(1)}, gradient));
}

const ShapeTable OwnRules = {
    {"aten::_embedding_bag", embeddingBag},
    {"aten::_embedding_bag_dense_backward", embeddingBagBackward},
    {"aten::abs", likeFirst},
    {"aten::bucketize.Tensor", bucketize},
    {"aten::dot", scalarLikeFirst},
    {"aten::embedding", embedding},
    {"aten::embedding_dense_backward", embeddingDenseBackward},
    {"aten::flip", likeFirst},
    {"aten::floor_divide", broadcastFirstTwo},
    {"aten::hardswish", likeFirst},
    {"aten::hardswish_backward", likeOperand<1>},
    {"aten::hardtanh", likeFirst},
    {"aten::hardtanh_backward", likeOperand<1>},
    {"aten::index_select", indexSelect},
    {"aten::isnan", boolLikeFirst},
    {"aten::log_sigmoid_backward", likeOperand<1>},
    {"aten::log_sigmoid_forward", logSigmoid},
    {"aten::logical_and", boolBroadcast},
    {"aten::logical_not", boolLikeFirst},
    {"aten::logical_or", boolBroadcast},
    {"aten::max", scalarLikeFirst},
    {"aten::min", scalarLikeFirst},
    {"aten::native_layer_norm", nativeLayerNorm},
    {"aten::native_layer_norm_backward", nativeLayerNormBackward},
    {"aten::relu", likeFirst},
    {"aten::roll", likeFirst},
    {"aten::searchsorted.Scalar", searchSorted},
    {"aten::searchsorted.Tensor", searchSorted},
    {"aten::where.self", where},
};

} // namespace

ShapeRule shapeRuleOf(const std::string &op) {
  static const ShapeTable rules = [] {
    ShapeTable table = OwnRules;
    addSpatialShapes(table);
    addReductionShapes(table);
    return table;
  }();
  auto found = rules.find(op);
  return found == rules.end() ? nullptr : found->second;
}

namespace {

/// Most bytes of operands that are made for one call.
constexpr int64_t MaxZeroBytes = int64_t(64) << 20;

bool dependsOnData(const c10::OperatorHandle &handle) {
  return handle.hasTag(at::Tag::data_dependent_output) ||
         handle.hasTag(at::Tag::dynamic_output_shape);
}

/// This value with each tensor in it replaced.
template <typename Replace>
c10::IValue mapTensors(const c10::IValue &value, Replace replace) {
  if (value.isTensor())
    return value.toTensor().defined() ? replace(value.toTensor()) : value;
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor &tensor : value.toTensorVector())
      list.push_back(tensor.defined() ? replace(tensor) : tensor);
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const std::optional<at::Tensor> &tensor :
         value.toOptionalTensorVector())
      list.push_back(tensor && tensor->defined()
                         ? std::optional(replace(*tensor))
                         : std::nullopt);
    return list;
  }
  return value;
}

} // namespace

bool shapesFromZeros(const c10::OperatorHandle &handle,
                     const Arguments &arguments, Results &results) {
  if (dependsOnData(handle))
    return false;
  int64_t bytes = 0;
  for (const c10::IValue &argument : arguments)
    mapTensors(argument, [&](const at::Tensor &tensor) {
      bytes += static_cast<int64_t>(tensor.nbytes());
      return tensor;
    });
  if (bytes > MaxZeroBytes)
    return false;
  at::AutoDispatchSkipFunctionalize direct;
  at::AutoDispatchBelowAutograd below;
  torch::jit::Stack stack;
  for (const c10::IValue &argument : arguments)
    stack.push_back(argument.isDevice()
                        ? c10::IValue(c10::Device(c10::kCPU))
                        : mapTensors(argument, [](const at::Tensor &tensor) {
                            at::Tensor zeros = at::empty_strided(
                                tensor.sizes(), tensor.strides(),
                                tensor.options().device(c10::kCPU));
                            return zeros.zero_();
                          }));
  try {
    handle.callBoxed(stack);
  } catch (const c10::Error &) {
    return false;
  }
  for (const c10::IValue &result : stack)
    results.push_back(mapTensors(result, [](const at::Tensor &tensor) {
      return at::empty_strided(tensor.sizes(), tensor.strides(),
                               tensor.options().device(c10::kMeta));
    }));
  return true;
}

} // namespace monarch
