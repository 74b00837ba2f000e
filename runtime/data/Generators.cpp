//===- Generators.cpp - synthetic batches and fresh weights ---------------===//
//
// See Generators.h. The generator is SplitMix64's finaliser over a counter.
//
//===----------------------------------------------------------------------===//
#include "runtime/data/Generators.h"

#include "runtime/data/MemorySources.h"
#include "runtime/support/Tensors.h"

#include <cmath>
#include <numbers>
#include <string_view>

namespace monarch::runtime {

namespace {

constexpr double weightDeviation = 0.02;

uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// FNV-1a: the same on every machine, unlike std::hash.
uint64_t hashOf(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char c : text)
    hash = (hash ^ c) * 0x100000001b3;
  return hash;
}

/// Draws by position.
class Stream {
public:
  Stream(int64_t seed, int64_t step, std::string_view name)
      : key(mix(mix(static_cast<uint64_t>(seed)) ^
                mix(static_cast<uint64_t>(step) + 0x5bd1e995) ^ hashOf(name))) {
  }

  uint64_t bits(int64_t position) const {
    return mix(key ^ mix(static_cast<uint64_t>(position)));
  }
  int64_t below(int64_t bound, int64_t position) const {
    __extension__ using Wide = unsigned __int128;
    return static_cast<int64_t>((Wide(bits(position)) * Wide(bound)) >> 64);
  }
  /// Box-Muller.
  double normal(int64_t position) const {
    uint64_t first = bits(position);
    double radius = std::sqrt(
        -2 * std::log((double(first >> 11) + 0.5) / double(uint64_t{1} << 53)));
    double angle = 2 * std::numbers::pi * double(mix(first) >> 11) /
                   double(uint64_t{1} << 53);
    return radius * std::cos(angle);
  }

private:
  uint64_t key;
};

/// Draws in double (or int64) and converts: the numbers do not depend on the
/// type.
template <typename Draw>
at::Tensor drawn(const std::vector<int64_t> &shape, bool isFloat, DType type,
                 int64_t first, Draw draw) {
  at::Tensor tensor =
      emptyTensor(isFloat ? DType::Float64 : DType::Int64, shape);
  for (int64_t i = 0; i < tensor.numel(); ++i)
    if (isFloat)
      tensor.mutable_data_ptr<double>()[i] = draw(first + i);
    else
      tensor.mutable_data_ptr<int64_t>()[i] =
          static_cast<int64_t>(draw(first + i));
  return tensor.to(scalarTypeOf(type));
}

bool isCalled(const std::string &name, std::string_view last) {
  return name == last || name.ends_with("." + std::string(last));
}

} // namespace

Expected<at::Tensor> SyntheticBatches::read(const BatchRequest &request) {
  // Rows first, so that a row's position does not depend on the unit's size.
  std::vector<int64_t> shape = request.shape;
  int64_t rowDim = request.input.rowDim;
  int64_t first = 0;
  if (request.isBatched()) {
    int64_t rows = shape[rowDim];
    shape.erase(shape.begin() + rowDim);
    int64_t perRow = 1;
    for (int64_t size : shape)
      perRow *= size;
    shape.insert(shape.begin(), rows);
    first = request.unit * rows * perRow;
  }
  bool isFloat = isFloating(request.type);
  int64_t bound = request.input.bound;
  Stream stream(seed, request.isBatched() ? request.step : 0,
                request.input.name);
  at::Tensor tensor =
      isFloat ? drawn(shape, true, request.type, first,
                      [&](int64_t i) { return stream.normal(i); })
              : drawn(shape, false, request.type, first, [&](int64_t i) {
                  return bound > 0 ? stream.below(bound, i) : 1;
                });
  if (rowDim > 0)
    tensor = tensor.movedim(0, rowDim).contiguous();
  return tensor;
}

Expected<at::Tensor> InitialWeights::read(const WeightRequest &request) {
  if (!request.isParameter) {
    if (others)
      return others->read(request);
    return missingWeight(request, "--init draws parameters; this buffer has no "
                                  "values without a file");
  }
  const std::string &name = request.names[0];
  if (isCalled(name, "bias"))
    return zeroTensor(request.type, request.shape);
  if (isCalled(name, "weight") && request.shape.size() == 1)
    return zeroTensor(request.type, request.shape).fill_(1);
  Stream stream(seed, 0, name);
  return drawn(request.shape, true, request.type, 0,
               [&](int64_t i) { return weightDeviation * stream.normal(i); });
}

} // namespace monarch::runtime
