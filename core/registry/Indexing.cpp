//===- Indexing.cpp - rules of indexing, gathering and triangles ----------===//
//
// A dim that is looked up by data is whole; the others, and the dims of the
// indices, may be split. Triangles know their rows and columns from index
// lists, so they may be split anywhere.
//
//===----------------------------------------------------------------------===//
#include "core/registry/Body.h"
#include "core/registry/Registry.h"

namespace monarch {

namespace {

/// index(x, indices): indices broadcast together; their dims stand where the
/// first indexed dim was, or in front when a slice separates indexed dims.
std::optional<OpRule> index(const OpView &op) {
  const auto *list = std::get_if<OperandListArg>(&op.op.args[1]);
  if (!list)
    return std::nullopt;
  Shape shape = op.shape(0);
  std::vector<size_t> indexed;
  size_t indexRank = 0;
  for (size_t dim = 0; dim < list->indices.size(); ++dim) {
    if (list->indices[dim] < 0)
      continue;
    // A mask's result has as many rows as the data say.
    if (op.type(list->indices[dim]) == DType::Bool)
      return std::nullopt;
    indexed.push_back(dim);
    indexRank = std::max(indexRank, op.shape(list->indices[dim]).size());
  }
  if (indexed.empty())
    return std::nullopt;
  bool adjacent = indexed.back() - indexed.front() + 1 == indexed.size();
  size_t place = adjacent ? indexed.front() : 0;

  Labels whole = numbered(shape.size());
  for (size_t dim : indexed)
    whole[dim] = {};
  OpRule rule;
  rule.results.emplace_back();
  Labels &result = rule.results[0];
  for (size_t dim = 0; dim < whole.size(); ++dim)
    if (!whole[dim].name.empty())
      result.push_back(whole[dim]);
  Labels looked;
  for (size_t dim = 0; dim < indexRank; ++dim)
    looked.push_back(DimLabel{"x" + std::to_string(dim)});
  result.insert(result.begin() + place, looked.begin(), looked.end());

  Shape resultShape = op.resultShape(0);
  Shape lookedShape(resultShape.begin() + place,
                    resultShape.begin() + place + indexRank);
  rule.operands.resize(op.operandCount());
  rule.operands[0] = whole;
  for (size_t dim : indexed)
    rule.operands[list->indices[dim]] =
        broadcast(op.shape(list->indices[dim]), lookedShape, looked);
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

} // namespace

void addIndexingRules(RuleTable &table) {
  table["aten::index.Tensor"] = index;
  table["aten::gather"] = gather;
  table["aten::tril"] = triangle;
  table["aten::triu"] = triangle;
}

} // namespace monarch
