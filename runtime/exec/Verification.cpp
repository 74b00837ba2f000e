//===- Verification.cpp - against the one-process meaning -----------------===//
//
// See Verification.h.
//
//===----------------------------------------------------------------------===//
#include "runtime/exec/Verification.h"

#include "runtime/comm/ThreadCommunicator.h"
#include "runtime/exec/WideStep.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/scalar_tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace monarch::runtime {

namespace {

constexpr double floorShare = 1e-3;
constexpr double floorShareOfZeros = 1e-2;
/// Below this share of the largest entry a tensor is zero but for rounding.
constexpr double zeroShare = 1e-4;
/// Two sums of other order are each as far from the exact one as one process;
/// their largest entries need not be the same ones.
constexpr double roundingShare = 4;

struct Difference {
  std::string name;
  double difference = 0;
  double largest = 0;
  /// How far one process is from the exact result; 0 where that is not known.
  double rounding = 0;
};

double largestEntry(const at::Tensor &tensor) {
  if (tensor.numel() == 0)
    return 0;
  return tensor.abs().max().item().toDouble();
}

/// Infinities and what is not a number are equal where they are in both: a step
/// none of whose labels count has no loss in one process either.
Difference differenceOf(const std::string &name, const at::Tensor &actual,
                        const at::Tensor &expected) {
  at::Tensor a = actual.to(at::kDouble), b = expected.to(at::kDouble);
  at::Tensor same = a.eq(b).logical_or(a.isnan().logical_and(b.isnan()));
  return {name, largestEntry(a.sub(b).masked_fill(same, 0)),
          largestEntry(b.nan_to_num(0, 0, 0))};
}

/// The worst of tensors of one kind; NaN counts as infinite. What rounding
/// explains is within the tolerance.
Difference worstOf(const std::vector<Difference> &differences,
                   double tolerance) {
  double largest = 0;
  for (const Difference &each : differences)
    largest = std::max(largest, each.largest);
  Difference worst;
  for (const Difference &each : differences) {
    double share =
        each.largest < zeroShare * largest ? floorShareOfZeros : floorShare;
    double scale = std::max(each.largest, share * largest);
    double error = each.difference == 0 ? 0 : each.difference / scale;
    if (each.rounding > 0)
      error = std::min(error, tolerance * each.difference /
                                  (roundingShare * each.rounding));
    if (!std::isfinite(error))
      error = std::numeric_limits<double>::infinity();
    if (worst.name.empty() || error > worst.difference)
      worst = {each.name, error, each.largest};
  }
  return worst;
}

/// By the narrowest type that the program computes in. Narrow types are rounded
/// once an op whatever its sums' lengths, which are taken in float32: a few
/// times their epsilon.
double toleranceOf(const Program &program) {
  constexpr double narrow = 8;
  double tolerance = 1e-12;
  for (const Role &role : program.roles)
    for (const ProgramValue &value : role.values) {
      if (value.type == DType::Float32 || value.type == DType::Complex64)
        tolerance = std::max(tolerance, 1e-5);
      else if (value.type == DType::Float16)
        tolerance = std::max(tolerance, narrow * std::exp2(-10));
      else if (value.type == DType::BFloat16)
        tolerance = std::max(tolerance, narrow * std::exp2(-7));
    }
  return tolerance;
}

/// What the optimizer updates, by name: parameters or master copies.
std::map<std::string, DType> typesUpdatedBy(const Program &program) {
  std::map<std::string, DType> types;
  for (const SpreadTensor &tensor : spreadParameters(program))
    if (tensor.isTrained)
      types[tensor.names[0]] = tensor.type;
  return types;
}

} // namespace

struct Verification::Reference {
  explicit Reference(double tolerance) { figures.tolerance = tolerance; }

  MemoryTally tally;
  ThreadWorld world{1};
  std::unique_ptr<Communicator> communicator = world.communicator(0);
  std::unique_ptr<Executor> executor;
  VerifyFigures figures;
  int64_t seed = 0;
  /// Parameters and buffers that the step updates, as they were before it.
  NamedTensors before;
  /// Of the step that runs.
  const NamedTensors *jobGradients = nullptr;
  std::vector<Difference> differences;
  std::string missing;

  void onUpdate(const ProgramParameter &parameter, const at::Tensor &value,
                const at::Tensor &gradient) {
    before[parameter.names[0]] = value.clone();
    auto found = jobGradients->find(parameter.names[0]);
    if (found == jobGradients->end()) {
      missing = parameter.names[0];
      return;
    }
    differences.push_back(
        differenceOf(parameter.names[0], found->second, gradient));
    gradient.copy_(found->second);
  }

  void keepBuffers() {
    before.clear();
    for (const ProgramBuffer &buffer : executor->role().buffers)
      if (!buffer.constant)
        before[buffer.names[0]] = executor->value(buffer.value).clone();
  }

  /// What the step started from.
  NamedTensors state() const {
    NamedTensors all = before;
    auto add = [&](const auto &entries) {
      for (const auto &entry : entries)
        all.emplace(entry.names[0], executor->value(entry.value));
    };
    add(executor->role().parameters);
    add(executor->role().buffers);
    return all;
  }

  bool holds(const std::vector<Difference> &of) const {
    return worstOf(of, figures.tolerance).difference <= figures.tolerance;
  }

  /// Runs the step again, as it was and in float64, and notes what rounding
  /// does to `loss` and the gradients. A model whose ops have no float64 is
  /// judged without.
  void measureRounding(int64_t step, BatchSource &batches, Difference &loss) {
    const NamedTensors start = state();
    const Program &program = executor->program();
    auto own = stepFrom(program, false, start, seed, step, batches);
    auto exact = stepFrom(program, true, start, seed, step, batches);
    if (!own || !exact)
      return;
    loss.rounding = std::abs(own->loss - exact->loss);
    for (Difference &each : differences)
      each.rounding = differenceOf(each.name, own->gradients.at(each.name),
                                   exact->gradients.at(each.name))
                          .difference;
  }

  void note(double VerifyFigures::*figure, const Difference &worst) {
    if (worst.difference <= figures.*figure)
      return;
    double before = std::max(
        {figures.loss, figures.gradients, figures.buffers, figures.weights});
    figures.*figure = worst.difference;
    if (worst.difference > before)
      figures.worst = worst.name;
  }

  void compare(const std::vector<SpreadTensor> &entries,
               const NamedTensors &tensors, double VerifyFigures::*figure) {
    std::vector<Difference> all;
    for (const SpreadTensor &entry : entries)
      if (auto found = tensors.find(entry.names[0]); found != tensors.end())
        all.push_back(differenceOf(entry.names[0], found->second,
                                   executor->value(entry.value)));
    note(figure, worstOf(all, figures.tolerance));
  }
};

Verification::Verification(std::unique_ptr<Reference> reference)
    : reference(std::move(reference)) {}
Verification::~Verification() = default;

Expected<std::unique_ptr<Verification>>
Verification::create(const Program &program, const Program &oneProcess,
                     WeightSource &weights, int64_t seed,
                     OptimizerSettings optimizer) {
  if (oneProcess.worldSize() != 1 ||
      oneProcess.modelDigest != program.modelDigest ||
      oneProcess.globalRows != program.globalRows ||
      oneProcess.unitRows != program.unitRows ||
      oneProcess.optimizer != program.optimizer ||
      typesUpdatedBy(oneProcess) != typesUpdatedBy(program))
    return Error{"MP4009", ExitCode::Stale,
                 "the one-process program is not of the same model, batch and "
                 "optimizer",
                 "", "compile the plan again"};
  auto reference = std::make_unique<Reference>(toleranceOf(program));
  reference->seed = seed;
  ExecutorOptions options;
  options.seed = seed;
  options.optimizer = optimizer;
  options.onUpdate = [raw = reference.get()](const ProgramParameter &parameter,
                                             const at::Tensor &value,
                                             const at::Tensor &gradient) {
    raw->onUpdate(parameter, value, gradient);
  };
  auto executor =
      Executor::create(oneProcess, *reference->communicator, reference->tally,
                       weights, std::move(options));
  if (!executor)
    return executor.error();
  if (auto error = (*executor)->connect())
    return *error;
  reference->executor = std::move(*executor);
  return std::unique_ptr<Verification>(new Verification(std::move(reference)));
}

std::optional<Error> Verification::step(int64_t step, BatchSource &batches,
                                        double loss,
                                        const NamedTensors &gradients) {
  reference->jobGradients = &gradients;
  reference->differences.clear();
  reference->keepBuffers();
  auto result = reference->executor->step(step, batches);
  reference->jobGradients = nullptr;
  if (!result) {
    Error error = result.error();
    error.where = "the one-process program: " + error.where;
    return error;
  }
  if (!reference->missing.empty())
    return contradiction("the job has no gradient of " + reference->missing);
  if (!result->loss)
    return contradiction("the one-process program has no loss");
  Difference lossError =
      differenceOf(fmt::format("loss of step {}", step + 1),
                   at::scalar_tensor(loss, at::kDouble),
                   at::scalar_tensor(*result->loss, at::kDouble));
  if (!reference->holds({lossError}) ||
      !reference->holds(reference->differences))
    reference->measureRounding(step, batches, lossError);
  const double tolerance = reference->figures.tolerance;
  reference->note(&VerifyFigures::loss, worstOf({lossError}, tolerance));
  Difference worst = worstOf(reference->differences, tolerance);
  worst.name = "gradient of " + worst.name;
  reference->note(&VerifyFigures::gradients, worst);
  return std::nullopt;
}

void Verification::compareBuffers(const NamedTensors &buffers) {
  reference->compare(spreadBuffers(reference->executor->program()), buffers,
                     &VerifyFigures::buffers);
}

void Verification::compareWeights(const NamedTensors &weights) {
  reference->compare(spreadParameters(reference->executor->program()), weights,
                     &VerifyFigures::weights);
}

const VerifyFigures &Verification::figures() const {
  return reference->figures;
}

} // namespace monarch::runtime
