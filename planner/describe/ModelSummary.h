//===- ModelSummary.h - what a model is, in numbers -----------------------===//
//
// What a person asks of a model before planning it: its inputs and parameters,
// the work and memory of one unit, which of its parts repeat, and what limits
// how it can be split. Read from the graph and the rules alone; the file behind
// the graph is described by whoever read it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/support/Json.h"
#include "planner/search/SplitRules.h"

namespace monarch::planner {

/// Parameters that differ in the numbers of their names alone
/// ("h.*.attn.weight"), of one shape and type. Ties count once.
struct ParameterGroup {
  std::string name;
  std::vector<int64_t> shape;
  DType type = DType::Float32;
  bool trainable = true;
  int64_t count = 0;

  int64_t elements() const; // of all of them
  int64_t bytes() const { return elements() * byteWidth(type); }
};

/// Modules "PREFIX.0", "PREFIX.1", ... whose ops do the same.
struct RepeatedBlock {
  std::string prefix;
  /// Numbers of equal modules, ascending; the model may have several such sets.
  std::vector<int64_t> indices;
  int64_t forwardOps = 0; // of one
  int64_t forwardFlops = 0;
  int64_t backwardFlops = 0;
};

/// Heads of all attentions that have as many.
struct AttentionHeads {
  int64_t query = 0;
  int64_t keyValue = 0;
  int64_t count = 0;
};

/// A legal tensor degree.
struct TensorDegree {
  int64_t degree = 1;
  /// Every attention splits its heads evenly on every axis; else some run whole
  /// on one.
  bool even = true;
};

/// A dim of a matrix that some op would split.
struct SplitDim {
  std::string parameter;
  int dim = 0;
  int64_t size = 0;
  bool operator==(const SplitDim &) const = default;
};

struct ModelSummary {
  std::vector<ParameterGroup> parameters;
  /// Each list is one parameter under all its names.
  std::vector<std::vector<std::string>> ties;
  int64_t bufferBytes = 0; // and constants
  int64_t forwardFlops = 0;
  int64_t backwardFlops = 0;
  /// Results of forward ops that the backward reads, each storage once.
  int64_t savedBytes = 0;
  std::vector<RepeatedBlock> blocks;
  std::vector<AttentionHeads> heads;
  std::map<std::string, int> wholeOps;
  std::vector<SplitDim> splitDims;
  /// From 2 to MostTensorDegree.
  std::vector<TensorDegree> tensorDegrees;
  /// Stages have one deciding op at least.
  int64_t mostStages = 1;

  int64_t parameterCount(bool trainableOnly = false) const;
};

inline constexpr int64_t MostTensorDegree = 64;

/// Figures are of one unit of graph().unitRows rows.
ModelSummary summarizeModel(const StrategySpace &space);

/// For people: fits a screen for a model of repeated blocks.
std::string toText(const Graph &graph, const ModelSummary &summary);
Json toJson(const Graph &graph, const ModelSummary &summary);

} // namespace monarch::planner
