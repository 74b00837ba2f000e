//===- Registry.cpp - the table of rules by name, and label helpers -------===//
//
// The table is filled once, family by family. An op without an entry, or whose
// entry declines this use of it (a weighted loss, a reduction that was not
// rewritten), stays whole and replicated.
//
//===----------------------------------------------------------------------===//
#include "core/registry/Registry.h"
#include "core/registry/UserRules.h"

namespace monarch {

namespace {

RuleTable makeTable() {
  RuleTable table;
  addElementwiseRules(table);
  addMatmulRules(table);
  addViewRules(table);
  addSectionRules(table);
  addReductionRules(table);
  addEmbeddingRules(table);
  addIndexingRules(table);
  addScatterRules(table);
  addNormalizationRules(table);
  addSoftmaxRules(table);
  addLogSumExpRules(table);
  addLossRules(table);
  addAttentionRules(table);
  addRandomRules(table);
  addCreationRules(table);
  addActivationRules(table);
  addConvolutionRules(table);
  addChannelNormRules(table);
  addPoolingRules(table);
  addEmbeddingBagRules(table);
  addSelectionRules(table);
  addGroupedMatmulRules(table);
  return table;
}

const RuleTable &table() {
  static const RuleTable rules = makeTable();
  return rules;
}

template <typename T> const T *argAs(const Op &op, size_t argument) {
  return argument < op.args.size() ? std::get_if<T>(&op.args[argument])
                                   : nullptr;
}

} // namespace

std::optional<OpRule> ruleOf(const Graph &graph, const Op &op) {
  auto found = table().find(op.name);
  if (found == table().end())
    return userRuleOf(graph, op);
  return found->second(OpView(graph, op));
}

std::vector<std::string> registeredOps() {
  std::vector<std::string> names;
  for (const auto &[name, make] : table())
    names.push_back(name);
  return names;
}

//===- OpView -------------------------------------------------------------===//

int OpView::operandAt(size_t argument) const {
  const auto *operand = argAs<OperandArg>(op, argument);
  return operand ? operand->index : -1;
}

int64_t OpView::intAt(size_t argument, int64_t absent) const {
  const auto *number = argAs<int64_t>(op, argument);
  return number ? *number : absent;
}

bool OpView::boolAt(size_t argument, bool absent) const {
  const auto *flag = argAs<bool>(op, argument);
  return flag ? *flag : absent;
}

std::optional<double> OpView::numberAt(size_t argument) const {
  if (const auto *number = argAs<int64_t>(op, argument))
    return static_cast<double>(*number);
  if (const auto *number = argAs<double>(op, argument))
    return *number;
  if (const auto *flag = argAs<bool>(op, argument))
    return *flag ? 1.0 : 0.0;
  return std::nullopt;
}

std::vector<int64_t> OpView::intsAt(size_t argument) const {
  if (const auto *list = argAs<std::vector<int64_t>>(op, argument))
    return *list;
  if (const auto *number = argAs<int64_t>(op, argument))
    return {*number};
  return {};
}

//===- Labels -------------------------------------------------------------===//

Labels labels(std::initializer_list<const char *> names) {
  Labels result;
  for (const char *name : names)
    result.push_back(DimLabel{name});
  return result;
}

Labels numbered(size_t rank) {
  Labels result;
  for (size_t dim = 0; dim < rank; ++dim)
    result.push_back(DimLabel{"d" + std::to_string(dim)});
  return result;
}

Labels broadcast(const Shape &operand, const Shape &result,
                 const Labels &resultLabels) {
  Labels names(operand.size());
  if (operand.size() > result.size())
    return names;
  size_t shift = result.size() - operand.size();
  for (size_t dim = 0; dim < operand.size(); ++dim)
    if (operand[dim] == result[dim + shift] && operand[dim] != 1)
      names[dim] = resultLabels[dim + shift];
  return names;
}

int64_t wrapDim(int64_t dim, size_t rank) {
  return dim < 0 ? dim + static_cast<int64_t>(rank) : dim;
}

OpRule unlabelled(const OpView &op) {
  OpRule rule;
  for (size_t k = 0; k < op.operandCount(); ++k)
    rule.operands.emplace_back(op.shape(k).size());
  for (size_t k = 0; k < op.resultCount(); ++k)
    rule.results.emplace_back(op.resultShape(k).size());
  return rule;
}

OpRule elementwise(const OpView &op) {
  OpRule rule;
  Shape result = op.resultShape(0);
  Labels names = numbered(result.size());
  for (size_t k = 0; k < op.operandCount(); ++k)
    rule.operands.push_back(broadcast(op.shape(k), result, names));
  for (size_t k = 0; k < op.resultCount(); ++k)
    rule.results.push_back(broadcast(op.resultShape(k), result, names));
  return rule;
}

void makePartial(OpRule &rule, const std::string &label) {
  rule.effects[label].results.assign(rule.results.size(),
                                     AxisStateKind::Partial);
}

void addLinear(OpRule &rule, std::vector<int> operands) {
  LinearGroup group;
  group.operands = std::move(operands);
  for (size_t k = 0; k < rule.results.size(); ++k)
    group.partialResults.push_back(static_cast<int>(k));
  rule.linear.push_back(std::move(group));
}

} // namespace monarch
