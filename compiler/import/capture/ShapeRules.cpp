//===- ShapeRules.cpp - one rule an op ------------------------------------===//
//
// Results are contiguous, or like an operand, as the CPU kernels give them.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/capture/ShapeRules.h"

#include <ATen/ATen.h>
#include <ATen/ExpandUtils.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include <map>

namespace monarch {

namespace {

using Arguments = std::vector<c10::IValue>;
using Results = torch::jit::Stack;

at::Tensor contiguous(at::IntArrayRef sizes, const at::Tensor &like) {
  return at::empty(sizes, like.options());
}

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
  results.emplace_back(contiguous({}, args[0].toTensor()));
}

void where(const Arguments &args, Results &results) {
  at::Tensor sum = at::add(args[1].toTensor(), args[2].toTensor());
  results.emplace_back(
      contiguous(at::infer_size(args[0].toTensor().sizes(), sum.sizes()), sum));
}

void indexSelect(const Arguments &args, Results &results) {
  const at::Tensor &x = args[0].toTensor();
  std::vector<int64_t> sizes = x.sizes().vec();
  int64_t dim = args[1].toInt();
  sizes[dim < 0 ? dim + x.dim() : dim] = args[2].toTensor().numel();
  results.emplace_back(contiguous(sizes, x));
}

void embedding(const Arguments &args, Results &results) {
  const at::Tensor &weight = args[0].toTensor();
  std::vector<int64_t> sizes = args[1].toTensor().sizes().vec();
  sizes.push_back(weight.size(1));
  results.emplace_back(contiguous(sizes, weight));
}

void embeddingDenseBackward(const Arguments &args, Results &results) {
  const at::Tensor &gradient = args[0].toTensor();
  results.emplace_back(
      contiguous({args[2].toInt(), gradient.size(-1)}, gradient));
}

void nativeLayerNorm(const Arguments &args, Results &results) {
  const at::Tensor &x = args[0].toTensor();
  std::vector<int64_t> sizes = x.sizes().vec();
  size_t normalized = args[1].toIntVector().size();
  for (size_t i = sizes.size() - normalized; i < sizes.size(); ++i)
    sizes[i] = 1;
  results.emplace_back(at::empty_like(x));
  results.emplace_back(contiguous(sizes, x));
  results.emplace_back(contiguous(sizes, x));
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

const std::map<std::string, ShapeRule> Rules = {
    {"aten::abs", likeFirst},
    {"aten::dot", scalarLikeFirst},
    {"aten::embedding", embedding},
    {"aten::embedding_dense_backward", embeddingDenseBackward},
    {"aten::flip", likeFirst},
    {"aten::index_select", indexSelect},
    {"aten::logical_and", boolBroadcast},
    {"aten::logical_not", boolLikeFirst},
    {"aten::logical_or", boolBroadcast},
    {"aten::max", scalarLikeFirst},
    {"aten::min", scalarLikeFirst},
    {"aten::native_layer_norm", nativeLayerNorm},
    {"aten::native_layer_norm_backward", nativeLayerNormBackward},
    {"aten::relu", likeFirst},
    {"aten::where.self", where},
};

} // namespace

ShapeRule shapeRuleOf(const std::string &op) {
  auto found = Rules.find(op);
  return found == Rules.end() ? nullptr : found->second;
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
