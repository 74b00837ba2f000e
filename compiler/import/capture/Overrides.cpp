//===- Overrides.cpp - attention, dropout and means -----------------------===//
//
// Kernels registered at AutogradCPU, where composite ops are taken apart: below
// it a mean has lost what it counts. What a kernel calls is observed and
// differentiated as the model's own ops are.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/capture/Overrides.h"
#include "runtime/ops/Kernels.h"

#include <ATen/ATen.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/nll_loss_nd_native.h>
#include <c10/core/SymIntArrayRef.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <cmath>
#include <limits>

namespace monarch {

struct Overrides::State {
  Recorder &recorder;
  at::Tensor random;
  const std::set<std::string> &plainMeans;
  int64_t streams = 0;
  int64_t means = 0;
  std::vector<c10::RegistrationHandleRAII> kernels;
  std::unique_ptr<torch::Library> gradients;
};

namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// The overrides at work: kernels are plain functions.
struct {
  Recorder *recorder = nullptr;
  const Tensor *random = nullptr;
  const std::set<std::string> *plainMeans = nullptr;
  int64_t *streams = nullptr;
  int64_t *means = nullptr;
} active;

template <typename Signature> auto op(const char *name) {
  return c10::Dispatcher::singleton()
      .findSchemaOrThrow(name, "")
      .template typed<Signature>();
}
using AttentionSignature = decltype(attentionCpu);
using AttentionBackwardSignature = decltype(attentionBackwardCpu);
using DropoutSignature = decltype(dropoutCpu);
using DropoutBackwardSignature = decltype(dropoutBackwardCpu);

//===- Gradients of the project's ops -------------------------------------===//

struct Attention : torch::autograd::Function<Attention> {
  static variable_list forward(AutogradContext *context, const Tensor &q,
                               const Tensor &k, const Tensor &v,
                               const OptionalTensor &mask, bool isCausal,
                               double scale) {
    at::AutoDispatchBelowADInplaceOrView below;
    auto [out, logsumexp] = op<AttentionSignature>("monarch::attention")
                                .call(q, k, v, mask, isCausal, scale);
    context->save_for_backward(
        {q, k, v, mask ? *mask : Tensor(), out, logsumexp});
    context->mark_non_differentiable({logsumexp});
    context->set_materialize_grads(false);
    context->saved_data["isCausal"] = isCausal;
    context->saved_data["scale"] = scale;
    return {out, logsumexp};
  }
  static variable_list backward(AutogradContext *context,
                                variable_list gradients) {
    variable_list result(6);
    if (!gradients[0].defined())
      return result;
    variable_list saved = context->get_saved_variables();
    OptionalTensor mask;
    if (saved[3].defined())
      mask = saved[3];
    // An absent mask has no edge, so edge 3 exists only with one.
    std::array<bool, 4> need = {
        context->needs_input_grad(0), context->needs_input_grad(1),
        context->needs_input_grad(2), mask && context->needs_input_grad(3)};
    std::tie(result[0], result[1], result[2], result[3]) =
        op<AttentionBackwardSignature>("monarch::attention_backward")
            .call(gradients[0], saved[0], saved[1], saved[2], mask, saved[4],
                  saved[5], context->saved_data["isCausal"].toBool(),
                  context->saved_data["scale"].toDouble(), need);
    return result;
  }
};

struct Dropout : torch::autograd::Function<Dropout> {
  static variable_list forward(AutogradContext *context, const Tensor &x,
                               const Tensor &rng, int64_t stream, double p,
                               at::TensorList rows, at::IntArrayRef sizes) {
    at::AutoDispatchBelowADInplaceOrView below;
    auto [y, mask] = op<DropoutSignature>("monarch::dropout")
                         .call(x, rng, stream, p, rows, sizes);
    context->save_for_backward({mask});
    context->mark_non_differentiable({mask});
    context->set_materialize_grads(false);
    context->saved_data["p"] = p;
    return {y, mask};
  }
  static variable_list backward(AutogradContext *context,
                                variable_list gradients) {
    variable_list result(6);
    if (gradients[0].defined())
      result[0] = op<DropoutBackwardSignature>("monarch::dropout_backward")
                      .call(gradients[0], context->get_saved_variables()[0],
                            context->saved_data["p"].toDouble());
    return result;
  }
};

Tensor2 attentionWithGradient(const Tensor &q, const Tensor &k, const Tensor &v,
                              const OptionalTensor &mask, bool isCausal,
                              double scale) {
  variable_list result = Attention::apply(q, k, v, mask, isCausal, scale);
  return {result[0], result[1]};
}

Tensor2 dropoutWithGradient(const Tensor &x, const Tensor &rng, int64_t stream,
                            double p, at::TensorList rows,
                            at::IntArrayRef sizes) {
  variable_list result = Dropout::apply(x, rng, stream, p, rows, sizes);
  return {result[0], result[1]};
}

//===- Overrides ----------------------------------------------------------===//

Tensor dropoutOf(const Tensor &x, double p, bool train) {
  if (!train || p == 0)
    return x;
  return std::get<0>(
      op<DropoutSignature>("monarch::dropout")
          .call(x, *active.random, (*active.streams)++, p, {}, {}));
}

Tensor &dropoutInPlace(Tensor &x, double p, bool train) {
  return !train || p == 0 ? x : x.copy_(dropoutOf(x, p, train));
}

/// Heads of k and v repeated to those of q.
Tensor repeatHeads(const Tensor &x, int64_t heads) {
  int64_t groups = x.size(1);
  if (groups == heads)
    return x;
  return x.unsqueeze(2)
      .expand({x.size(0), groups, heads / groups, x.size(2), x.size(3)})
      .reshape({x.size(0), heads, x.size(2), x.size(3)});
}

/// With dropout the probabilities are values, so that their mask can be split.
Tensor spelledAttention(const Tensor &q, const Tensor &k, const Tensor &v,
                        const OptionalTensor &mask, bool isCausal, double scale,
                        double p) {
  Tensor scores = at::matmul(q, k.transpose(-2, -1)).mul(scale);
  const double hidden = -std::numeric_limits<double>::infinity();
  if (isCausal) {
    auto rows = at::arange(q.size(2), q.options().dtype(at::kLong));
    auto columns = at::arange(k.size(2), q.options().dtype(at::kLong));
    scores = scores.masked_fill(at::gt(columns.unsqueeze(0), rows.unsqueeze(1)),
                                hidden);
  }
  if (mask && mask->scalar_type() == at::kBool)
    scores = scores.masked_fill(mask->logical_not(), hidden);
  else if (mask)
    scores = scores.add(*mask);
  return at::matmul(dropoutOf(at::softmax(scores, -1), p, true), v);
}

Tensor attentionOf(const Tensor &query, const Tensor &key, const Tensor &value,
                   const OptionalTensor &attentionMask, double p, bool isCausal,
                   std::optional<double> scale, bool) {
  Tensor q = query, k = key, v = value;
  OptionalTensor mask;
  if (attentionMask && attentionMask->defined())
    mask = attentionMask;
  const bool isBatched = q.dim() != 3;
  if (!isBatched) {
    q = q.unsqueeze(0), k = k.unsqueeze(0), v = v.unsqueeze(0);
    if (mask && mask->dim() == 3)
      mask = mask->unsqueeze(0);
  }
  TORCH_CHECK(q.dim() == 4, "attention over ", query.dim(), " dims");
  k = repeatHeads(k, q.size(1));
  v = repeatHeads(v, q.size(1));
  const double factor =
      scale ? *scale : 1 / std::sqrt(static_cast<double>(q.size(-1)));
  Tensor out = p > 0 ? spelledAttention(q, k, v, mask, isCausal, factor, p)
                     : std::get<0>(op<AttentionSignature>("monarch::attention")
                                       .call(q, k, v, mask, isCausal, factor));
  return isBatched ? out : out.squeeze(0);
}

/// The name of the next mean's leaf; nullopt where the mean stays one.
std::optional<std::string> nextMean() {
  std::string name = "inverse_count." + std::to_string((*active.means)++);
  if (active.plainMeans->count(name) != 0)
    return std::nullopt;
  return name;
}

Tensor meanOf(const Tensor &sum, const std::string &name, LossCount count) {
  Recorder &recorder = *active.recorder;
  Tensor inverse = recorder.leaf(ValueKind::InverseCount, name,
                                 *toDType(sum.scalar_type()), {});
  count.inverseCount = recorder.idOf(inverse);
  recorder.graph.counts.push_back(count);
  return sum.mul(inverse);
}

Tensor meanOfElements(const Tensor &sum, int64_t elements) {
  auto name = nextMean();
  if (!name)
    return sum.div(elements);
  LossCount count;
  count.perUnit = elements;
  return meanOf(sum, *name, count);
}

Tensor nllLoss(const Tensor &scores, const Tensor &classes,
               const OptionalTensor &weight, int64_t reduction,
               c10::SymInt ignoreIndex) {
  Tensor x = scores, target = classes;
  // Classes stand in dim 1: each position is a row.
  if (reduction != at::Reduction::None && x.dim() > 2) {
    x = x.movedim(1, -1).reshape({-1, x.size(1)});
    target = target.reshape({-1});
  }
  // With class weights the count is not one of elements.
  bool isCounted =
      reduction == at::Reduction::Mean && !(weight && weight->defined());
  auto name = isCounted ? nextMean() : std::nullopt;
  if (!name)
    return at::native::nll_loss_nd_symint(x, target, weight, reduction,
                                          ignoreIndex);
  LossCount count;
  count.target = active.recorder->idOf(target);
  count.ignoreIndex = ignoreIndex.guard_int(__FILE__, __LINE__);
  return meanOf(at::native::nll_loss_nd_symint(x, target, {},
                                               at::Reduction::Sum, ignoreIndex),
                *name, count);
}

Tensor reducedLoss(const Tensor &losses, int64_t reduction) {
  if (reduction == at::Reduction::None)
    return losses;
  Tensor sum = losses.sum();
  return reduction == at::Reduction::Sum ? sum
                                         : meanOfElements(sum, losses.numel());
}

Tensor mseLoss(const Tensor &x, const Tensor &target, int64_t reduction) {
  return reducedLoss(at::pow(at::sub(x, target), 2), reduction);
}

/// Quadratic up to `width`, then linear.
Tensor smoothLoss(const Tensor &x, const Tensor &target, double width) {
  Tensor distance = at::abs(at::sub(x, target));
  if (width == 0)
    return distance;
  return at::where(distance.lt(width), distance.pow(2).mul(0.5 / width),
                   distance.sub(0.5 * width));
}

Tensor smoothL1Loss(const Tensor &x, const Tensor &target, int64_t reduction,
                    double beta) {
  return reducedLoss(smoothLoss(x, target, beta), reduction);
}

Tensor huberLoss(const Tensor &x, const Tensor &target, int64_t reduction,
                 double delta) {
  return reducedLoss(smoothLoss(x, target, delta).mul(delta), reduction);
}

Tensor binaryLoss(const Tensor &x, const Tensor &target,
                  const OptionalTensor &weight,
                  const OptionalTensor &positiveWeight, int64_t reduction) {
  Tensor logOdds = at::log_sigmoid(x);
  if (positiveWeight && positiveWeight->defined())
    logOdds = logOdds.mul(positiveWeight->sub(1).mul(target).add(1));
  Tensor losses = at::rsub(target, 1).mul(x).sub(logOdds);
  if (weight && weight->defined())
    losses = losses.mul(*weight);
  return reducedLoss(losses, reduction);
}

/// Spelled as views and one copy: how often is then a size, which may be that
/// of the batch.
Tensor repeated(const Tensor &x, c10::SymIntArrayRef times) {
  const auto counts = C10_AS_INTARRAYREF_SLOW(times);
  const size_t added = counts.size() - static_cast<size_t>(x.dim());
  std::vector<int64_t> apart, wide, result;
  for (size_t dim = 0; dim < counts.size(); ++dim) {
    const int64_t size =
        dim < added ? 1 : x.size(static_cast<int64_t>(dim - added));
    apart.insert(apart.end(), {1, size});
    wide.insert(wide.end(), {counts[dim], size});
    result.push_back(counts[dim] * size);
  }
  return x.reshape(apart).expand(wide).clone().reshape(result);
}

/// PyTorch's own looks at the classes to check them.
Tensor oneHot(const Tensor &classes, int64_t count) {
  TORCH_CHECK(count > 0, "one_hot without a number of classes: its size "
                         "depends on data");
  return at::eq(classes.unsqueeze(-1),
                at::arange(count, classes.options().dtype(at::kLong)))
      .to(at::kLong);
}

Tensor fullMean(const Tensor &x, std::optional<at::ScalarType> type) {
  return meanOfElements(at::sum(x, type), x.numel());
}

} // namespace

Overrides::Overrides(Recorder &recorder,
                     const std::set<std::string> &plainMeans)
    : state(new State{recorder, {}, plainMeans, 0, 0, {}, nullptr}) {
  state->random = recorder.leaf(ValueKind::Random, "random", DType::Int64, {3});
  active = {&recorder, &state->random, &plainMeans, &state->streams,
            &state->means};
  state->gradients = std::make_unique<torch::Library>(
      torch::Library::IMPL, "monarch", c10::DispatchKey::Autograd, __FILE__,
      __LINE__);
  state->gradients->impl("attention", attentionWithGradient);
  state->gradients->impl("dropout", dropoutWithGradient);
  auto add = [&](const char *name, auto *kernel) {
    state->kernels.push_back(c10::Dispatcher::singleton().registerImpl(
        {name, ""}, c10::DispatchKey::AutogradCPU,
        c10::KernelFunction::makeFromUnboxedRuntimeFunction(kernel),
        std::nullopt, nullptr, "capture"));
  };
  add("aten::scaled_dot_product_attention", &attentionOf);
  add("aten::dropout", &dropoutOf);
  add("aten::dropout_", &dropoutInPlace);
  add("aten::nll_loss_nd", &nllLoss);
  add("aten::mse_loss", &mseLoss);
  add("aten::smooth_l1_loss", &smoothL1Loss);
  add("aten::huber_loss", &huberLoss);
  add("aten::binary_cross_entropy_with_logits", &binaryLoss);
  add("aten::mean", &fullMean);
  add("aten::repeat", &repeated);
  add("aten::one_hot", &oneHot);
}

Overrides::~Overrides() { active = {}; }

} // namespace monarch
