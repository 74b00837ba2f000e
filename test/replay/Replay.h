//===- Replay.h - a joint graph, op by op on whole tensors ----------------===//
//
// The meaning of a graph in the fewest words: each op is one call of LibTorch's
// dispatcher. Independent of the runtime; the reference of the tests.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/graph/Graph.h"

#include <ATen/core/Tensor.h>

#include <map>

namespace monarch {

/// Values of a unit by name: parameters and buffers by their first FQN, inputs
/// and constants by name.
using NamedTensors = std::map<std::string, at::Tensor>;

struct Step {
  at::Tensor loss;
  /// By first FQN: the sum over uses and units.
  NamedTensors gradients;
  /// Every buffer, by first FQN, as the last unit left it.
  NamedTensors buffers;
};

/// Every value of one unit; leaves of kinds Random, InverseCount and Seed are
/// given by value.
std::vector<at::Tensor> replay(const Graph &graph,
                               std::map<ValueId, at::Tensor> leaves);

/// One training step: units in order, losses summed and divided by the counts
/// of all units. `batch` holds whole inputs, a multiple of the unit's rows.
Step replayStep(const Graph &graph, const NamedTensors &leaves,
                const NamedTensors &batch, int64_t seed);

at::ScalarType scalarTypeOf(DType type);

} // namespace monarch
