//===- GptGraph.h - the joint graph of a GPT of any size, for tests -------===//
//
// What capture makes of a decoder with learned positions, fused QKV, causal
// attention, a tied head and cross-entropy, as ops without a model file: for
// tests that need a whole training step, up to 12 layers of width 768.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/graph/Graph.h"

namespace monarch::test {

struct GptShape {
  int64_t rows = 2;
  int64_t sequence = 5;
  int64_t heads = 3;
  int64_t headDim = 4;
  int64_t vocabulary = 13;
  int64_t layers = 2;
  DType type = DType::Float64;
};

/// With a dynamic batch.
Graph gptGraph(const GptShape &shape);

} // namespace monarch::test
