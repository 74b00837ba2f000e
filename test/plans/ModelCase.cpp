#include "test/plans/ModelCase.h"

#include "runtime/support/Tensors.h"

#include <ATen/ATen.h>

#include <cmath>

namespace monarch::test {
namespace {

uint64_t hashOf(const std::string &text, uint64_t salt) {
  uint64_t hash = 1469598103934665603ull ^ salt; // FNV-1a
  for (unsigned char c : text)
    hash = (hash ^ c) * 1099511628211ull;
  return hash;
}

uint64_t mix(uint64_t z) {
  z += 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

double uniform(uint64_t key, uint64_t position) {
  return static_cast<double>(mix(key ^ mix(position)) >> 11) * 0x1p-53;
}

/// Irwin-Hall: close enough to normal, and the same everywhere.
double normal(uint64_t key, uint64_t position) {
  double sum = -6;
  for (uint64_t i = 0; i < 12; ++i)
    sum += uniform(key, position * 12 + i);
  return sum;
}

/// Filled with normal numbers times a scale, plus an offset; a complex number
/// is two of them.
at::Tensor numbers(DType type, const std::vector<int64_t> &shape, uint64_t key,
                   double scale, double offset) {
  std::vector<int64_t> reals = shape;
  if (isComplex(type))
    reals.push_back(2);
  at::Tensor tensor = at::empty(reals, at::kDouble);
  double *data = tensor.mutable_data_ptr<double>();
  for (int64_t i = 0; i < tensor.numel(); ++i)
    data[i] = offset + scale * normal(key, static_cast<uint64_t>(i));
  return isComplex(type) ? at::view_as_complex(tensor) : tensor;
}

bool contains(const std::string &text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

} // namespace

Graph promoted(Graph graph) {
  const auto raise = [](DType &type) {
    if (isFloating(type))
      type = isComplex(type) ? DType::Complex128 : DType::Float64;
  };
  for (Value &value : graph.values)
    raise(value.type);
  for (Op &op : graph.ops)
    for (Arg &arg : op.args)
      if (DType *type = std::get_if<DType>(&arg))
        raise(*type);
  return graph;
}

Expected<at::Tensor>
RandomWeights::read(const runtime::WeightRequest &request) {
  const std::string &name = request.names[0];
  if (!isFloating(request.type)) {
    // Tables of positions or types: 0, 1, 0, 1 are in bounds everywhere.
    at::Tensor table = runtime::emptyTensor(request.type, request.shape);
    at::Tensor flat = table.view({-1});
    flat.fill_(0);
    if (flat.numel() > 1)
      flat.slice(0, 1, flat.numel(), 2).fill_(1);
    return table;
  }
  const bool isScale = request.shape.size() == 1 && contains(name, "weight");
  return numbers(request.type, request.shape, hashOf(name, 1), 0.2,
                 isScale ? 1 : 0);
}

Expected<at::Tensor> RandomBatches::read(const runtime::BatchRequest &request) {
  const std::string &name = request.input.name;
  const uint64_t unit =
      request.isBatched() ? static_cast<uint64_t>(request.unit) : 0;
  const uint64_t key = hashOf(name, 7 + 31 * unit);
  if (isFloating(request.type))
    return numbers(request.type, request.shape, key, 1, 0);
  at::Tensor tensor = at::ones(request.shape, at::kLong);
  int64_t *data = tensor.mutable_data_ptr<int64_t>();
  if (request.input.bound > 0)
    for (int64_t i = 0; i < tensor.numel(); ++i)
      data[i] =
          static_cast<int64_t>(mix(key ^ mix(static_cast<uint64_t>(i))) %
                               static_cast<uint64_t>(request.input.bound));
  if (contains(name, "label"))
    for (int64_t i = 0; i < tensor.numel(); ++i)
      if (unit % 3 == 1 || uniform(key ^ 5, static_cast<uint64_t>(i)) < 0.3)
        data[i] = -100;
  return tensor.to(request.type == DType::Bool ? at::kBool : at::kLong);
}

Expected<runtime::SessionResult>
runCase(const Program &program,
        decltype(runtime::SessionOptions::onInstruction) onInstruction) {
  RandomWeights weights;
  RandomBatches batches;
  runtime::SessionOptions options;
  options.seed = 11;
  options.optimizer.learningRate = 1e-3;
  options.onInstruction = std::move(onInstruction);
  return runtime::runThreads(program, weights, batches, options);
}

Deviation compare(const runtime::SessionResult &result,
                  const runtime::SessionResult &reference) {
  Deviation worst;
  const auto see = [&](const std::string &where, double error) {
    if (!(error <= worst.error)) // NaN is worst of all
      worst = {where, error};
  };
  if (result.losses.size() != reference.losses.size())
    return {"number of losses", INFINITY};
  for (size_t s = 0; s < reference.losses.size(); ++s)
    see("loss", std::abs(result.losses[s] - reference.losses[s]) /
                    std::max(std::abs(reference.losses[s]), 1e-3));
  // Types of eight bits have no arithmetic of their own.
  const auto wide = [](const at::Tensor &t) {
    return t.is_complex() ? t.to(at::kComplexDouble) : t.to(at::kDouble);
  };
  const auto maximum = [&](const at::Tensor &t) {
    return t.numel() == 0 ? 0.0 : wide(t).abs().max().item<double>();
  };
  for (size_t s = 0; s < reference.gradients.size(); ++s) {
    double largest = 0;
    for (const auto &[name, gradient] : reference.gradients[s])
      largest = std::max(largest, maximum(gradient));
    if (s >= result.gradients.size() ||
        result.gradients[s].size() != reference.gradients[s].size())
      return {"number of gradients", INFINITY};
    for (const auto &[name, gradient] : reference.gradients[s]) {
      const auto found = result.gradients[s].find(name);
      if (found == result.gradients[s].end() ||
          found->second.sizes() != gradient.sizes())
        return {"gradient of " + name, INFINITY};
      const double size = maximum(gradient);
      // Zero by construction (a key's bias): only rounding is left.
      const double floor = size < 1e-10 * largest ? 1e-2 : 1e-3;
      see("gradient of " + name, maximum(wide(found->second) - wide(gradient)) /
                                     std::max(size, floor * largest));
    }
  }
  for (const auto &[name, buffer] : reference.buffers) {
    const auto found = result.buffers.find(name);
    if (found == result.buffers.end())
      continue; // not read by this plan's stages
    if (isFloatingType(buffer.scalar_type()))
      see("buffer " + name, maximum(wide(found->second) - wide(buffer)) /
                                std::max(maximum(buffer), 1e-3));
  }
  return worst;
}

} // namespace monarch::test
