//===- Registry.h - the table of rules, for the files that fill it --------===//
//
// Private to this folder. Each op family is one file with one `add...Rules`
// function; a rule is made from an op's operand and result shapes and its
// arguments by a plain function. OpView is what such a function may look at.
// Labels of dims are named "d0", "d1", ... when an op has no names of its own.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/registry/Lowering.h"

#include <initializer_list>

namespace monarch {

using Labels = std::vector<DimLabel>;
using Shape = std::vector<int64_t>;

class OpView {
public:
  OpView(const Graph &graph, const Op &op) : graph(graph), op(op) {}

  size_t operandCount() const { return op.operands.size(); }
  size_t resultCount() const { return op.results.size(); }
  /// Empty for an absent operand or result.
  Shape shape(int operand) const { return shapeOf(op.operands[operand]); }
  Shape resultShape(int result) const { return shapeOf(op.results[result]); }
  DType type(int operand) const {
    return graph.value(op.operands[operand]).type;
  }
  DType resultType(int result) const {
    return graph.value(op.results[result]).type;
  }

  /// The operand at this place of the schema, -1 when it is a number or absent.
  int operandAt(size_t argument) const;
  /// Literals at this place of the schema, or the default when absent.
  int64_t intAt(size_t argument, int64_t absent) const;
  bool boolAt(size_t argument, bool absent) const;
  std::optional<double> numberAt(size_t argument) const;
  std::vector<int64_t> intsAt(size_t argument) const;

  const Graph &graph;
  const Op &op;

private:
  Shape shapeOf(ValueId value) const {
    return value == None ? Shape{} : graph.value(value).shape;
  }
};

using MakeRule = std::optional<OpRule> (*)(const OpView &);
using RuleTable = std::map<std::string, MakeRule, std::less<>>;

void addElementwiseRules(RuleTable &table);
void addMatmulRules(RuleTable &table);
void addViewRules(RuleTable &table);
void addSectionRules(RuleTable &table);
void addReductionRules(RuleTable &table);
void addEmbeddingRules(RuleTable &table);
void addIndexingRules(RuleTable &table);
void addScatterRules(RuleTable &table);
void addNormalizationRules(RuleTable &table);
void addSoftmaxRules(RuleTable &table);
void addLogSumExpRules(RuleTable &table);
void addLossRules(RuleTable &table);
void addAttentionRules(RuleTable &table);
void addRandomRules(RuleTable &table);
void addCreationRules(RuleTable &table);
void addActivationRules(RuleTable &table);
void addConvolutionRules(RuleTable &table);
void addChannelNormRules(RuleTable &table);
void addPoolingRules(RuleTable &table);
void addEmbeddingBagRules(RuleTable &table);
void addSelectionRules(RuleTable &table);
void addGroupedMatmulRules(RuleTable &table);

//===- Labels -------------------------------------------------------------===//

/// "i", "k", "" for a dim without a label.
Labels labels(std::initializer_list<const char *> names);
/// d0 .. d(rank-1).
Labels numbered(size_t rank);
/// Labels of an operand that broadcasts to `result`: its dims take the name of
/// the dim they stand under, or none where they are repeated.
Labels broadcast(const Shape &operand, const Shape &result,
                 const Labels &resultLabels);
/// A dim number of a tensor of this rank, negative ones counted from the end.
int64_t wrapDim(int64_t dim, size_t rank);

/// A slice of one dim: arguments dim, start, end, step from `argument` on, of a
/// tensor of this shape.
struct SliceRange {
  int64_t dim, begin, end, step;
};
SliceRange sliceRange(const OpView &op, size_t argument, const Shape &shape);
/// Labels of the tensor that is cut, and of the slice. The dim has none where
/// the slice takes only some of its range.
Labels sliceLabels(const SliceRange &range, const Shape &shape);
Labels slicePiece(const Labels &whole, const SliceRange &range,
                  const Shape &shape);

/// x[indices], the list being argument 1: indices broadcast together; their
/// dims stand where the first indexed dim was, or in front when a slice
/// separates indexed dims.
struct Indexing {
  /// Of x: no label where it is indexed. Of x[indices].
  Labels whole, result;
  /// x0, x1, ...: dims of the indices, broadcast.
  Labels looked;
  Shape resultShape;
  /// Labels of each index, by operand.
  std::map<int, Labels> indices;
};
/// nullopt where the number of rows depends on data.
std::optional<Indexing> indexingOf(const OpView &op);

/// A rule with empty labels of the right ranks: nothing may be split.
OpRule unlabelled(const OpView &op);
/// Every operand broadcasts to the first result; every other result is like it.
OpRule elementwise(const OpView &op);
/// Splitting this label makes every result that lacks it partial.
void makePartial(OpRule &rule, const std::string &label);
/// The op is linear in these operands jointly: all results become partial.
void addLinear(OpRule &rule, std::vector<int> operands);

} // namespace monarch
