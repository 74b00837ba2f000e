//===- ValueClasses.cpp - what tensor parallelism splits ------------------===//
#include "planner/work/ValueClasses.h"

#include "core/registry/Rule.h"

#include <algorithm>
#include <set>

namespace monarch::planner {

namespace {

bool isCast(const std::string &name) { return name == "aten::_to_copy"; }

/// Reads whole rows of features to make one number of them.
bool normalises(const std::string &name) {
  static const std::set<std::string> names = {"aten::native_layer_norm",
                                              "aten::mean.dim",
                                              "aten::_softmax",
                                              "aten::topk",
                                              "aten::sort",
                                              "aten::_fused_rms_norm"};
  return names.count(name) > 0;
}

bool endsWalk(const Op &op) {
  return isProduct(op) || op.name == "monarch::attention" ||
         op.name == "aten::_log_softmax";
}

} // namespace

bool isProduct(const Op &op) {
  return op.name == "aten::mm" || op.name == "aten::bmm" ||
         op.name == "aten::addmm" || op.name == "aten::baddbmm";
}

size_t leftOperand(const Op &op) { return op.operands.size() == 3 ? 1 : 0; }

ValueClasses::ValueClasses(const Graph &graph, bool hasOwnModules)
    : graph(graph), readers(graph.values.size()),
      classes(graph.values.size(), ValueClass::Static),
      splits(graph.ops.size(), WeightSplit::None),
      weights(graph.values.size(), None), roots(graph.values.size(), None),
      rows(graph.values.size(), false), merged(graph.ops.size(), false),
      sourceOfGradient(graph.values.size(), None) {
  for (size_t id = 0; id < graph.values.size(); ++id) {
    const Value &value = graph.values[id];
    rows[id] = std::any_of(value.batch.begin(), value.batch.end(),
                           [](int64_t factor) { return factor != 0; });
    roots[id] = static_cast<ValueId>(id);
    if (value.kind == ValueKind::Parameter)
      weights[id] = static_cast<ValueId>(id);
    else if (rows[id])
      classes[id] = ValueClass::Residual;
  }
  for (size_t id = 0; id < graph.ops.size(); ++id)
    for (ValueId operand : graph.ops[id].operands)
      if (graph.ops[id].phase == Phase::Forward)
        readers[operand].push_back(static_cast<OpId>(id));
  for (size_t id = 0; id < graph.ops.size(); ++id)
    classify(static_cast<OpId>(id), hasOwnModules);
}

bool ValueClasses::isNormalised(OpId product) const {
  std::vector<OpId> open = {product};
  std::set<OpId> seen;
  while (!open.empty()) {
    OpId id = open.back();
    open.pop_back();
    for (ValueId result : graph.op(id).results) {
      if (result == None)
        continue;
      for (OpId reader : readers[result]) {
        if (endsWalk(graph.op(reader)) || !seen.insert(reader).second)
          continue;
        if (normalises(graph.op(reader).name))
          return true;
        // Past an addition the value is part of the residual stream.
        if (graph.op(reader).name != "aten::add.Tensor")
          open.push_back(reader);
      }
    }
  }
  return false;
}

ValueClass ValueClasses::classOfProduct(OpId id, ValueId left, ValueId right) {
  const Op &op = graph.op(id);
  const bool hasWeight = weights[right] != None;
  if (op.phase == Phase::Backward && op.forward != None)
    splits[id] = splits[op.forward];
  if (!hasWeight) {
    // Two activations: heads of an attention that is spelled out, or the
    // gradient of a weight, whose class is Static by having no rows.
    bool isSplit = classes[left] == ValueClass::Split ||
                   classes[right] == ValueClass::Split;
    return isSplit ? ValueClass::Split : ValueClass::Residual;
  }
  if (graph.value(right).shape.size() == 3) {
    splits[id] = WeightSplit::Expert;
    return ValueClass::Residual;
  }
  if (op.phase == Phase::Forward) {
    if (classes[left] == ValueClass::Split)
      splits[id] = WeightSplit::RowsOf;
    else if (!isNormalised(id))
      splits[id] = WeightSplit::Columns;
    return splits[id] == WeightSplit::Columns ? ValueClass::Split
                                              : ValueClass::Residual;
  }
  return splits[id] == WeightSplit::RowsOf ? ValueClass::Split
                                           : ValueClass::Residual;
}

ValueId ValueClasses::source(OpId product) const {
  const Op &op = graph.op(product);
  const Op &own = op.forward == None ? op : graph.op(op.forward);
  return roots[own.operands[leftOperand(own)]];
}

/// A sum of gradients that products of one activation make.
bool ValueClasses::addsOneSource(const Op &op) const {
  if (op.phase != Phase::Backward || op.forward != None ||
      op.name != "aten::add.Tensor" || op.operands.size() != 2)
    return false;
  ValueId first = sourceOfGradient[roots[op.operands[0]]];
  return first != None && first == sourceOfGradient[roots[op.operands[1]]];
}

/// A copy of heads that attention would take grouped, or the sum over them.
bool ValueClasses::repeatsHeads(const Op &op) const {
  if (op.operands.empty())
    return false;
  const Value &from = graph.value(op.operands[0]);
  if (op.name == "aten::clone")
    return from.producer != None &&
           graph.op(from.producer).name == "aten::expand" &&
           from.shape.size() == 5;
  return op.name == "aten::sum.dim_IntList" && op.phase == Phase::Backward &&
         op.forward != None && graph.op(op.forward).name == "aten::expand" &&
         from.shape.size() == 5;
}

void ValueClasses::classify(OpId id, bool hasOwnModules) {
  const Op &op = graph.op(id);
  const bool isView = isViewCall(op.name);
  ValueClass found = ValueClass::Residual;
  if (isProduct(op)) {
    size_t left = leftOperand(op);
    found = classOfProduct(id, op.operands[left], op.operands[left + 1]);
    if (op.phase == Phase::Backward && op.forward != None &&
        rows[op.results[0]] && weights[op.operands[left + 1]] != None)
      sourceOfGradient[op.results[0]] = source(id);
  } else if (op.name == "aten::embedding" && weights[op.operands[0]] != None) {
    splits[id] = rows[op.operands[1]] ? WeightSplit::RowsOf : WeightSplit::None;
  } else {
    for (ValueId operand : op.operands)
      if (classes[operand] == ValueClass::Split)
        found = ValueClass::Split;
  }
  merged[id] = hasOwnModules && (addsOneSource(op) || repeatsHeads(op));
  for (ValueId result : op.results) {
    if (result == None)
      continue;
    if (merged[id])
      roots[result] = roots[op.operands[0]];
    classes[result] = rows[result] ? found : ValueClass::Static;
    if (op.operands.empty() || (!isView && !isCast(op.name)))
      continue;
    if (isView)
      roots[result] = roots[op.operands[0]];
    if (!rows[result])
      weights[result] = weights[op.operands[0]];
  }
}

} // namespace monarch::planner
