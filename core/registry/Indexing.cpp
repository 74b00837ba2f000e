//===- Indexing.cpp - rules of indexing, gathering and triangles ----------===//
//
// A dim that is looked up by data is whole; the others, and the dims of the
// indices, may be split. Triangles know their rows and columns from index
// lists, so they may be split anywhere.
//
//===----------------------------------------------------------------------===//
#include "core/registry/Body.h"
#include "core/registry/Registry.h"

#include <algorithm>

namespace monarch {

namespace {

std::optional<OpRule> index(const OpView &op) {
  auto indexing = indexingOf(op);
  if (!indexing)
    return std::nullopt;
  OpRule rule;
  rule.operands.resize(op.operandCount());
  rule.operands[0] = indexing->whole;
  for (const auto &[operand, names] : indexing->indices)
    rule.operands[operand] = names;
  rule.results = {indexing->result};
  addLinear(rule, {0});
  return rule;
}

/// gather(x, dim, index, sparse_grad): index may be shorter than x.
std::optional<OpRule> gather(const OpView &op) {
  OpRule rule;
  Shape shape = op.shape(0), indices = op.shape(1);
  if (shape.empty())
    return std::nullopt;
  int64_t dim = wrapDim(op.intAt(1, 0), shape.size());
  Labels names = numbered(shape.size());
  rule.operands = {names, names};
  for (size_t k = 0; k < shape.size(); ++k) {
    if (static_cast<int64_t>(k) == dim)
      rule.operands[0][k] = {};
    else if (shape[k] != indices[k])
      rule.operands[0][k] = rule.operands[1][k] = {};
  }
  rule.results = {rule.operands[1]};
  addLinear(rule, {0});
  return rule;
}

/// tril(x, diagonal) keeps column - row <= diagonal, triu the others and it.
std::optional<OpRule> triangle(const OpView &op) {
  OpRule rule = elementwise(op);
  addLinear(rule, {0});
  size_t rank = op.shape(0).size();
  std::vector<std::string> names = {rule.results[0][rank - 2].name,
                                    rule.results[0][rank - 1].name};
  bool isLower = op.op.name == "aten::tril";
  double diagonal = static_cast<double>(op.intAt(1, 0));
  rule.lower = [names, isLower, diagonal, rank](Lowering &lowering) {
    if (lowering.axesOf(names).empty())
      return lowering.callItself();
    Body body(lowering);
    int last = static_cast<int>(rank) - 1;
    Local row = body.unsqueeze(lowering.resultIndices(0, last - 1), 1);
    Local distance = body.sub(lowering.resultIndices(0, last), row);
    Local dropped = body.compare(
        isLower ? "aten::gt.Scalar" : "aten::lt.Scalar", distance, diagonal);
    lowering.results = {body.maskedFill(lowering.operands[0], dropped, 0)};
  };
  return rule;
}

/// The shape that these broadcast to together.
Shape broadcastShape(const std::vector<Shape> &shapes) {
  Shape result;
  for (const Shape &shape : shapes) {
    if (shape.size() > result.size())
      result.insert(result.begin(), shape.size() - result.size(), 1);
    size_t shift = result.size() - shape.size();
    for (size_t dim = 0; dim < shape.size(); ++dim)
      if (shape[dim] != 1)
        result[dim + shift] = shape[dim];
  }
  return result;
}

} // namespace

std::optional<Indexing> indexingOf(const OpView &op) {
  const auto *list = std::get_if<OperandListArg>(&op.op.args[1]);
  if (!list)
    return std::nullopt;
  Shape shape = op.shape(0);
  std::vector<size_t> indexed;
  std::vector<Shape> shapes;
  for (size_t dim = 0; dim < list->indices.size(); ++dim) {
    if (list->indices[dim] < 0)
      continue;
    // A mask has as many rows as the data say.
    if (op.type(list->indices[dim]) == DType::Bool)
      return std::nullopt;
    indexed.push_back(dim);
    shapes.push_back(op.shape(list->indices[dim]));
  }
  if (indexed.empty())
    return std::nullopt;
  bool adjacent = indexed.back() - indexed.front() + 1 == indexed.size();
  size_t place = adjacent ? indexed.front() : 0;

  Indexing indexing;
  Shape lookedShape = broadcastShape(shapes);
  for (size_t dim = 0; dim < lookedShape.size(); ++dim)
    indexing.looked.push_back(DimLabel{"x" + std::to_string(dim)});
  indexing.whole = numbered(shape.size());
  for (size_t dim : indexed) {
    indexing.whole[dim] = {};
    int operand = list->indices[dim];
    indexing.indices[operand] =
        broadcast(op.shape(operand), lookedShape, indexing.looked);
  }
  for (size_t dim = 0; dim < shape.size(); ++dim)
    if (!std::binary_search(indexed.begin(), indexed.end(), dim)) {
      indexing.result.push_back(indexing.whole[dim]);
      indexing.resultShape.push_back(shape[dim]);
    }
  indexing.result.insert(indexing.result.begin() + place,
                         indexing.looked.begin(), indexing.looked.end());
  indexing.resultShape.insert(indexing.resultShape.begin() + place,
                              lookedShape.begin(), lookedShape.end());
  return indexing;
}

void addIndexingRules(RuleTable &table) {
  table["aten::index.Tensor"] = index;
  table["aten::gather"] = gather;
  table["aten::tril"] = triangle;
  table["aten::triu"] = triangle;
}

} // namespace monarch
