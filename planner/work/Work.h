//===- Work.h - what a graph asks of a device, as functions of the split --===//
//
// The joint graph boiled down to what a step costs: per repeated block and
// phase the products, attentions, memory traffic and collectives, with sizes
// that know which degrees they shrink with. Made once from a graph, imported or
// built from hyper-parameters; then priced for any layout without going back.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/graph/Graph.h"

namespace monarch::planner {

/// How one rank's part of a block is cut.
struct BlockSplit {
  /// Rows of a micro-batch.
  double rows = 1;
  double tensor = 1;
  double context = 1;
  double expert = 1;
  /// Activations between tensor-parallel regions are split along the sequence.
  bool isSequenceParallel = false;
  auto operator<=>(const BlockSplit &) const = default;
};

/// A size of one row on one device, and what changes it.
struct Extent {
  enum : uint8_t {
    Rows = 1,      ///< times rows, over context
    Tensor = 2,    ///< over tensor
    Sequence = 4,  ///< over tensor where that splits sequences
    Expert = 8,    ///< over expert
    PerExpert = 16 ///< times expert: rows that one expert sees
  };
  double size = 0;
  uint8_t with = 0;
  bool operator==(const Extent &) const = default;
  double at(const BlockSplit &split) const;
};

enum class ProductKind : uint8_t { Forward, InputGradient, WeightGradient };

/// batch x [m, k] x [k, n].
struct Product {
  Extent batch, m, n, k;
  ProductKind kind = ProductKind::Forward;
  bool isExpert = false;
  /// Products of one activation with several weights have one number.
  int source = 0;
  bool operator==(const Product &) const = default;
};

/// Heads of one row; sequences are whole, context splits the queries.
struct AttentionWork {
  Extent heads;
  double kvHeads = 1;
  double queryDim = 0;
  double valueDim = 0;
  double sequence = 0;
  double keySequence = 0;
  bool isCausal = false;
  bool operator==(const AttentionWork &) const = default;
};

struct PhaseWork {
  std::vector<Product> products;
  std::vector<AttentionWork> attentions;
  /// Bytes moved by all other kernels, one entry per kind of extent.
  std::vector<Extent> traffic;
  /// Those kernels.
  int64_t kernels = 0;
  /// Ops that the host starts, views included.
  int64_t launches = 0;
  /// Results of products whose parts are added over tensor.
  std::vector<Extent> reductions;
  /// Activations that meet a column-split weight (gathered where sequences are
  /// split).
  std::vector<Extent> gathers;
  /// Tokens sent to experts, or back.
  std::vector<Extent> dispatches;
  bool operator==(const PhaseWork &) const = default;
};

struct BlockWork {
  PhaseWork forward, backward;
  /// Elements of parameters: split by tensor, whole on each rank, of experts.
  double tensorParameters = 0;
  double wholeParameters = 0;
  double expertParameters = 0;
  /// Bytes kept from forward to backward, one entry per kind of extent.
  std::vector<Extent> saved;
  /// Bytes of what the block gets from the one before.
  Extent boundary;
  bool operator==(const BlockWork &) const = default;

  double denseParameters(const BlockSplit &split) const {
    return tensorParameters / split.tensor + wholeParameters;
  }
  double parameters(const BlockSplit &split) const {
    return denseParameters(split) + expertParameters / split.expert;
  }
};

/// Which neighbouring pointwise ops and reductions a target runs as one kernel.
enum class Fusion : uint8_t {
  /// Each op is a kernel.
  None,
  /// Hand-fused: norms, activations with what follows, dropout with the add;
  /// along values that have one reader.
  Local,
  /// A compiler's: all that no product separates.
  Compiled
};

struct ModelWork {
  BlockWork embedding;
  std::vector<BlockWork> kinds;
  /// The model's layers in order, as indices into `kinds`.
  std::vector<int> layers;
  BlockWork head;
  double sequence = 0;
  double vocabulary = 0;
  /// The head reads the embedding's table.
  bool isTied = false;
  bool operator==(const ModelWork &) const = default;

  /// Elements, each parameter once.
  double parameterCount() const;
};

/// How a target runs the ops between products.
struct KernelStyle {
  Fusion fusion = Fusion::None;
  /// The target's own modules run instead of the model's: weights that meet the
  /// same activation are one weight (QKV, gate and up), a norm is one kernel
  /// each way, attention takes grouped heads without copies.
  bool hasOwnModules = false;
};

/// `repeats`: how often each block of the graph stands in the model, in order;
/// empty: once. MP3201 when the graph has no repeated blocks.
Expected<ModelWork> workOf(const Graph &graph, const KernelStyle &style,
                           const std::vector<int64_t> &repeats = {});

} // namespace monarch::planner
