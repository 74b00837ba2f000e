//===- AbstractOps.cpp - norms, embedding bags, grouped products ----------===//
//
// Each op is an autograd function over the project's forward and backward op,
// and a kernel that sends PyTorch's op there. An absent optional tensor has no
// edge, but a place among the gradients that are returned.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/capture/AbstractOps.h"
#include "runtime/ops/Kernels.h"

#include <ATen/ATen.h>
#include <ATen/ops/embedding_bag_native.h>
#include <c10/core/SymIntArrayRef.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

namespace monarch {

namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

const Recorder *activeRecorder = nullptr;

template <typename Signature> auto op(const char *name) {
  return c10::Dispatcher::singleton()
      .findSchemaOrThrow(name, "")
      .template typed<Signature>();
}

bool isGiven(const OptionalTensor &tensor) {
  return tensor && tensor->defined();
}

OptionalTensor given(const Tensor &tensor) {
  return tensor.defined() ? OptionalTensor(tensor) : std::nullopt;
}

Tensor orUndefined(const OptionalTensor &tensor) {
  return isGiven(tensor) ? *tensor : Tensor();
}

/// The edges of optional operands, in order, after those that are always there.
class Edges {
public:
  Edges(AutogradContext *context, size_t first)
      : context(context), next(first) {}
  bool needs(bool isPresent) {
    return isPresent && context->needs_input_grad(next++);
  }

private:
  AutogradContext *context;
  size_t next;
};

//===- Batch norm ---------------------------------------------------------===//

struct BatchNorm : torch::autograd::Function<BatchNorm> {
  static variable_list forward(AutogradContext *context, const Tensor &x,
                               const OptionalTensor &weight,
                               const OptionalTensor &bias,
                               const OptionalTensor &runningMean,
                               const OptionalTensor &runningVar,
                               double momentum, double epsilon) {
    at::AutoDispatchBelowADInplaceOrView below;
    auto [y, mean, rstd, newMean, newVar] =
        op<decltype(batchNormCpu)>("monarch::batch_norm")
            .call(x, weight, bias, runningMean, runningVar, momentum, epsilon);
    context->save_for_backward({x, orUndefined(weight), mean, rstd});
    context->set_materialize_grads(false);
    context->saved_data["hasBias"] = isGiven(bias);
    context->saved_data["epsilon"] = epsilon;
    variable_list constant = {mean, rstd};
    if (newMean.defined())
      constant.insert(constant.end(), {newMean, newVar});
    context->mark_non_differentiable(constant);
    constant.insert(constant.begin(), y);
    return constant;
  }
  static variable_list backward(AutogradContext *context,
                                variable_list gradients) {
    variable_list result(7);
    if (!gradients[0].defined())
      return result;
    variable_list saved = context->get_saved_variables();
    Edges edges(context, 1);
    const bool needsWeight = edges.needs(saved[1].defined());
    const bool needsBias = edges.needs(context->saved_data["hasBias"].toBool());
    std::tie(result[0], result[1], result[2]) =
        op<decltype(batchNormBackwardCpu)>("monarch::batch_norm_backward")
            .call(gradients[0], saved[0], given(saved[1]), saved[2], saved[3],
                  context->saved_data["epsilon"].toDouble(),
                  {context->needs_input_grad(0), needsWeight, needsBias});
    return result;
  }
};

Tensor5 batchNormWithGradient(const Tensor &x, const OptionalTensor &weight,
                              const OptionalTensor &bias,
                              const OptionalTensor &runningMean,
                              const OptionalTensor &runningVar, double momentum,
                              double epsilon) {
  variable_list result = BatchNorm::apply(x, weight, bias, runningMean,
                                          runningVar, momentum, epsilon);
  result.resize(5);
  return {result[0], result[1], result[2], result[3], result[4]};
}

/// [C] against [N, C, ...].
Tensor perChannel(const Tensor &values, const Tensor &x) {
  std::vector<int64_t> shape(x.dim(), 1);
  shape[1] = values.numel();
  return values.view(shape);
}

/// With fixed statistics: a product and a sum for each channel.
Tensor fixedBatchNorm(const Tensor &x, const OptionalTensor &weight,
                      const OptionalTensor &bias, const Tensor &mean,
                      const Tensor &var, double epsilon) {
  Tensor scale = at::rsqrt(at::add(var, epsilon));
  if (isGiven(weight))
    scale = at::mul(scale, *weight);
  Tensor shift = at::neg(at::mul(mean, scale));
  if (isGiven(bias))
    shift = at::add(shift, *bias);
  return at::add(at::mul(x, perChannel(scale, x)), perChannel(shift, x))
      .to(x.scalar_type());
}

Tensor batchNorm(const Tensor &x, const OptionalTensor &weight,
                 const OptionalTensor &bias, const OptionalTensor &runningMean,
                 const OptionalTensor &runningVar, bool isTraining,
                 double momentum, double epsilon, bool) {
  OptionalTensor mean, var;
  if (isGiven(runningMean) && isGiven(runningVar))
    mean = runningMean, var = runningVar;
  if (!isTraining) {
    TORCH_CHECK(mean, "batch norm without training has no statistics");
    return fixedBatchNorm(x, weight, bias, *mean, *var, epsilon);
  }
  auto [y, batchMean, rstd, newMean, newVar] =
      op<decltype(batchNormCpu)>("monarch::batch_norm")
          .call(x, given(orUndefined(weight)), given(orUndefined(bias)), mean,
                var, momentum, epsilon);
  if (mean) {
    at::NoGradGuard noGradient;
    mean->copy_(newMean);
    var->copy_(newVar);
  }
  return y;
}

//===- Group norm ---------------------------------------------------------===//

struct GroupNorm : torch::autograd::Function<GroupNorm> {
  static variable_list forward(AutogradContext *context, const Tensor &x,
                               const OptionalTensor &weight,
                               const OptionalTensor &bias, double epsilon) {
    at::AutoDispatchBelowADInplaceOrView below;
    auto [y, mean, rstd] = op<decltype(groupNormCpu)>("monarch::group_norm")
                               .call(x, weight, bias, epsilon);
    context->save_for_backward({x, mean, rstd, orUndefined(weight)});
    context->mark_non_differentiable({mean, rstd});
    context->set_materialize_grads(false);
    context->saved_data["hasBias"] = isGiven(bias);
    return {y, mean, rstd};
  }
  static variable_list backward(AutogradContext *context,
                                variable_list gradients) {
    variable_list result(4);
    if (!gradients[0].defined())
      return result;
    variable_list saved = context->get_saved_variables();
    Edges edges(context, 1);
    const bool needsWeight = edges.needs(saved[3].defined());
    const bool needsBias = edges.needs(context->saved_data["hasBias"].toBool());
    std::tie(result[0], result[1], result[2]) =
        op<decltype(groupNormBackwardCpu)>("monarch::group_norm_backward")
            .call(gradients[0], saved[0], saved[1], saved[2], given(saved[3]),
                  {context->needs_input_grad(0), needsWeight, needsBias});
    return result;
  }
};

Tensor3 groupNormWithGradient(const Tensor &x, const OptionalTensor &weight,
                              const OptionalTensor &bias, double epsilon) {
  variable_list result = GroupNorm::apply(x, weight, bias, epsilon);
  return {result[0], result[1], result[2]};
}

Tensor groupNorm(const Tensor &x, int64_t groups, const OptionalTensor &weight,
                 const OptionalTensor &bias, double epsilon, bool) {
  TORCH_CHECK(x.dim() >= 2 && groups > 0 && x.size(1) % groups == 0,
              "group norm of ", x.sizes(), " in ", groups, " groups");
  const int64_t perGroup = x.size(1) / groups;
  std::vector<int64_t> shape = x.sizes().vec();
  shape[1] = groups;
  shape.insert(shape.begin() + 2, perGroup);
  auto grouped = [&](const OptionalTensor &affine) {
    return isGiven(affine) ? OptionalTensor(affine->view({groups, perGroup}))
                           : std::nullopt;
  };
  return std::get<0>(op<decltype(groupNormCpu)>("monarch::group_norm")
                         .call(x.reshape(shape), grouped(weight), grouped(bias),
                               epsilon))
      .view(x.sizes());
}

//===- Embedding bags -----------------------------------------------------===//

struct EmbeddingBag : torch::autograd::Function<EmbeddingBag> {
  static variable_list forward(AutogradContext *context, const Tensor &weight,
                               const Tensor &indices,
                               const OptionalTensor &offsets,
                               const OptionalTensor &rowWeights, int64_t mode,
                               bool includesLast, int64_t padding) {
    at::AutoDispatchBelowADInplaceOrView below;
    Tensor out = op<decltype(embeddingBagCpu)>("monarch::embedding_bag")
                     .call(weight, indices, offsets, rowWeights, mode,
                           includesLast, padding, std::nullopt);
    context->save_for_backward(
        {weight, indices, orUndefined(offsets), orUndefined(rowWeights)});
    context->set_materialize_grads(false);
    context->saved_data["mode"] = mode;
    context->saved_data["includesLast"] = includesLast;
    context->saved_data["padding"] = padding;
    return {out};
  }
  static variable_list backward(AutogradContext *context,
                                variable_list gradients) {
    variable_list result(7);
    if (!gradients[0].defined())
      return result;
    variable_list saved = context->get_saved_variables();
    const bool needsRowWeights =
        Edges(context, saved[2].defined() ? 3 : 2).needs(saved[3].defined());
    std::tie(result[0], result[3]) =
        op<decltype(embeddingBagBackwardCpu)>("monarch::embedding_bag_backward")
            .call(gradients[0],
                  needsRowWeights ? OptionalTensor(saved[0]) : std::nullopt,
                  saved[1], given(saved[2]), given(saved[3]),
                  context->saved_data["mode"].toInt(),
                  context->saved_data["includesLast"].toBool(),
                  context->saved_data["padding"].toInt(), saved[0].size(0),
                  std::nullopt,
                  {context->needs_input_grad(0), needsRowWeights});
    return result;
  }
};

Tensor embeddingBagWithGradient(const Tensor &weight, const Tensor &indices,
                                const OptionalTensor &offsets,
                                const OptionalTensor &rowWeights, int64_t mode,
                                bool includesLast, int64_t padding,
                                const OptionalTensor &) {
  return EmbeddingBag::apply(weight, indices, offsets, rowWeights, mode,
                             includesLast, padding)[0];
}

/// How many ids each bag has when PyTorch itself made the offsets, for ids
/// given as [bags, ids]; 0 otherwise.
int64_t idsPerBag(const Tensor &indices, const Tensor &offsets) {
  const Graph &graph = activeRecorder->graph;
  const ValueId id = activeRecorder->idOf(offsets);
  const OpId producer = id == None ? None : graph.value(id).producer;
  if (producer == None || graph.op(producer).name != "aten::arange.start_step")
    return 0;
  const std::vector<Arg> &args = graph.op(producer).args;
  const auto *start = std::get_if<int64_t>(&args[0]);
  const auto *step = std::get_if<int64_t>(&args[2]);
  if (start == nullptr || *start != 0 || step == nullptr || *step < 1 ||
      *step * offsets.numel() != indices.numel())
    return 0;
  return *step;
}

Tensor4 embeddingBag(const Tensor &weight, const Tensor &indices,
                     const Tensor &offsets, bool scalesByFrequency,
                     int64_t mode, bool isSparse,
                     const OptionalTensor &rowWeights, bool includesLast,
                     std::optional<int64_t> padding) {
  constexpr int64_t Max = 2;
  if (mode == Max || scalesByFrequency)
    return at::native::embedding_bag(weight, indices, offsets,
                                     scalesByFrequency, mode, isSparse,
                                     rowWeights, includesLast, padding);
  Tensor ids = indices;
  OptionalTensor starts = offsets, factors = given(orUndefined(rowWeights));
  if (int64_t width = includesLast ? 0 : idsPerBag(indices, offsets)) {
    ids = ids.view({offsets.numel(), width});
    if (factors)
      factors = factors->view({offsets.numel(), width});
    starts = std::nullopt;
  }
  int64_t skipped = padding.value_or(-1);
  if (padding && skipped < 0)
    skipped += weight.size(0);
  Tensor out = op<decltype(embeddingBagCpu)>("monarch::embedding_bag")
                   .call(weight, ids, starts, factors, mode, includesLast,
                         skipped, std::nullopt);
  return {out, Tensor(), Tensor(), Tensor()};
}

//===- Grouped products ---------------------------------------------------===//

struct GroupedMatmul : torch::autograd::Function<GroupedMatmul> {
  static variable_list forward(AutogradContext *context, const Tensor &x,
                               const Tensor &weight, const Tensor &ends) {
    at::AutoDispatchBelowADInplaceOrView below;
    context->save_for_backward({x, weight, ends});
    context->set_materialize_grads(false);
    return {op<decltype(groupedMatmulCpu)>("monarch::grouped_mm")
                .call(x, weight, ends, std::nullopt)};
  }
  static variable_list backward(AutogradContext *context,
                                variable_list gradients) {
    variable_list result(3);
    if (!gradients[0].defined())
      return result;
    variable_list saved = context->get_saved_variables();
    std::tie(result[0], result[1]) =
        op<decltype(groupedMatmulBackwardCpu)>("monarch::grouped_mm_backward")
            .call(gradients[0], saved[0], saved[1], saved[2], std::nullopt,
                  {context->needs_input_grad(0), context->needs_input_grad(1)});
    return result;
  }
};

Tensor groupedMatmulWithGradient(const Tensor &x, const Tensor &weight,
                                 const Tensor &ends, const OptionalTensor &) {
  return GroupedMatmul::apply(x, weight, ends)[0];
}

Tensor groupedProduct(const Tensor &x, const Tensor &weight,
                      const Tensor &ends) {
  return op<decltype(groupedMatmulCpu)>("monarch::grouped_mm")
      .call(x, weight, ends, std::nullopt);
}

Tensor groupedMatmul(const Tensor &x, const Tensor &weight,
                     const OptionalTensor &ends, const OptionalTensor &bias,
                     std::optional<at::ScalarType> type) {
  TORCH_CHECK(x.dim() == 2 && weight.dim() == 3 && isGiven(ends) &&
                  !isGiven(bias),
              "only rows [n,k] by one matrix [k,m] a group are supported");
  Tensor y = groupedProduct(x, weight, *ends);
  return type ? y.to(*type) : y;
}

} // namespace

struct AbstractOps::State {
  /// Hugging Face's own op for experts on CPU: a Python op without a schema
  /// that C++ would know.
  torch::Library transformers{torch::Library::DEF, "transformers", std::nullopt,
                              __FILE__, __LINE__};
  torch::Library gradients{torch::Library::IMPL, "monarch",
                           c10::DispatchKey::Autograd, __FILE__, __LINE__};
  std::vector<c10::RegistrationHandleRAII> kernels;

  template <typename Kernel>
  void route(const char *name, const char *overload, Kernel *kernel) {
    kernels.push_back(c10::Dispatcher::singleton().registerImpl(
        {name, overload}, c10::DispatchKey::AutogradCPU,
        c10::KernelFunction::makeFromUnboxedRuntimeFunction(kernel),
        std::nullopt, nullptr, "capture"));
  }
};

AbstractOps::AbstractOps(Recorder &recorder)
    : state(std::make_unique<State>()) {
  activeRecorder = &recorder;
  state->gradients.impl("batch_norm", batchNormWithGradient);
  state->gradients.impl("group_norm", groupNormWithGradient);
  state->gradients.impl("embedding_bag", embeddingBagWithGradient);
  state->gradients.impl("grouped_mm", groupedMatmulWithGradient);
  state->transformers.def(
      "grouped_mm_fallback(Tensor input, Tensor weight, Tensor offs) -> "
      "Tensor");
  state->route("aten::batch_norm", "", &batchNorm);
  state->route("aten::group_norm", "", &groupNorm);
  state->route("aten::embedding_bag", "padding_idx", &embeddingBag);
  state->route("aten::_grouped_mm", "", &groupedMatmul);
  state->route("transformers::grouped_mm_fallback", "", &groupedProduct);
}

AbstractOps::~AbstractOps() { activeRecorder = nullptr; }

} // namespace monarch
