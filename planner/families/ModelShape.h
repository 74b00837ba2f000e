//===- ModelShape.h - hyper-parameters of a decoder -----------------------===//
//
// What a config.json or a row of published measurements says about a model:
// enough to write its joint graph. Two families: GPT (learned positions, layer
// norm, biases, GELU) and Llama (rotary, RMS norm, gated MLP, grouped heads),
// the latter with experts and latent attention where the numbers say so.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/graph/Graph.h"

#include <algorithm>

namespace monarch::planner {

enum class ModelFamily : uint8_t { Gpt, Llama };

struct ExpertShape {
  int64_t count = 0;
  int64_t perToken = 0;
  int64_t hidden = 0;
  /// Width of the experts that every token passes; 0: none.
  int64_t sharedHidden = 0;
  /// Layers at the start that have a plain MLP.
  int64_t denseLayers = 0;
  bool operator==(const ExpertShape &) const = default;
};

/// Multi-head latent attention: low-rank projections of queries and of keys and
/// values; each head has `nope + rope` query and `value` value dims.
struct LatentShape {
  int64_t queryRank = 0;
  int64_t keyRank = 0;
  int64_t nopeDim = 128;
  int64_t ropeDim = 64;
  int64_t valueDim = 128;
  bool operator==(const LatentShape &) const = default;
};

struct ModelShape {
  ModelFamily family = ModelFamily::Gpt;
  int64_t layers = 1;
  int64_t hidden = 0;
  int64_t heads = 0;
  int64_t kvHeads = 0;
  int64_t headDim = 0;
  int64_t mlpHidden = 0;
  /// The MLP multiplies an activation by a second projection.
  bool isGated = false;
  int64_t vocabulary = 0;
  int64_t sequence = 0;
  /// The head is the embedding's table.
  bool isTied = true;
  double dropout = 0;
  DType type = DType::BFloat16;
  std::optional<ExpertShape> experts;
  std::optional<LatentShape> latent;

  int64_t denseLayerCount() const {
    return experts ? std::min(experts->denseLayers, layers) : layers;
  }
  bool operator==(const ModelShape &) const = default;
};

/// MP1201: numbers that make no model (heads that do not divide, nothing to
/// multiply), or one too large for its sizes to be counted.
std::optional<Error> checkShape(const ModelShape &shape);

/// The joint graph of one row, as capture would write it from the model's code,
/// with cross-entropy on shifted labels given as an input. Experts get equal
/// shares of the tokens. The batch is dynamic. MP1201 as `checkShape`.
Expected<Graph> buildGraph(const ModelShape &shape);

/// From a Hugging Face config.json, for sequences of this length. MP1202: what
/// the config lacks.
Expected<ModelShape> readModelConfig(std::string_view text,
                                     const std::string &where,
                                     int64_t sequence);

} // namespace monarch::planner
