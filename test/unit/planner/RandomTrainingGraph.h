//===- RandomTrainingGraph.h - small joint graphs of real ops -------------===//
//
// Up to eight forward ops (views of weights not counted) drawn from products,
// gelu, sums, products of values, layer norm, softmax, views and transposes,
// with their backward and a summed loss. The batch is dynamic.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/graph/Graph.h"

#include <random>

namespace monarch::test {

/// The same for the same seed, on every machine.
Graph randomTrainingGraph(unsigned seed, int64_t rows, int forwardOps);

} // namespace monarch::test
