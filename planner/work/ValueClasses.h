//===- ValueClasses.h - what tensor parallelism splits --------------------===//
//
// The split that all targets with tensor parallelism share: of two weights in a
// row the first is split by columns and the second by rows, heads and
// vocabulary with them. Found from the graph alone: a product of a weight with
// a whole activation splits the weight's columns, one with a split activation
// its rows and leaves parts to add. A product whose result is normalised before
// the next weight stays whole.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/graph/Graph.h"

namespace monarch::planner {

enum class ValueClass : uint8_t {
  /// No rows: weights, masks, tables, scalars.
  Static,
  /// Rows, all features: the residual stream.
  Residual,
  /// Rows, split by features, heads or vocabulary.
  Split
};

enum class WeightSplit : uint8_t { None, Columns, RowsOf, Expert };

class ValueClasses {
public:
  ValueClasses(const Graph &graph, bool hasOwnModules);

  ValueClass of(ValueId value) const { return classes[value]; }
  /// How the op's weight is split (forward products and embeddings).
  WeightSplit weightSplit(OpId op) const { return splits[op]; }
  /// The parameter that this is a view or cast of; None.
  ValueId weightOf(ValueId value) const { return weights[value]; }
  /// Through views, to what owns the storage.
  ValueId root(ValueId value) const { return roots[value]; }
  bool hasRows(ValueId value) const { return rows[value]; }
  /// The activation, by its storage, that a product with a weight, or its
  /// backward, is about.
  ValueId source(OpId product) const;
  /// Gone where the target has modules of its own: sums of gradients that a
  /// merged projection leaves as one, copies of grouped heads.
  bool isMergedAway(OpId op) const { return merged[op]; }

private:
  void classify(OpId id, bool hasOwnModules);
  bool addsOneSource(const Op &op) const;
  bool repeatsHeads(const Op &op) const;
  bool isNormalised(OpId product) const;
  ValueClass classOfProduct(OpId id, ValueId left, ValueId right);

  const Graph &graph;
  std::vector<std::vector<OpId>> readers;
  std::vector<ValueClass> classes;
  std::vector<WeightSplit> splits;
  std::vector<ValueId> weights;
  std::vector<ValueId> roots;
  std::vector<bool> rows;
  std::vector<bool> merged;
  /// Of gradients of an activation: that activation; else None.
  std::vector<ValueId> sourceOfGradient;
};

/// mm, addmm, bmm, baddbmm.
bool isProduct(const Op &op);
/// The operand that is the left factor; the right one follows it.
size_t leftOperand(const Op &op);

} // namespace monarch::planner
