//===- InferBatch.cpp - shapes as functions of the batch ------------------===//
//
// Two captures that agree in all but shapes tell for each size whether it is a
// multiple of the rows or constant, also where two extents are equal by chance.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/Normalize.h"

namespace monarch {

namespace {

bool sameOp(const Op &a, const Op &b) {
  return a.name == b.name && a.operands == b.operands && a.args == b.args &&
         a.results == b.results && a.phase == b.phase && a.forward == b.forward;
}

/// How often the rows are in a size: 0 if it does not depend on them, nullopt
/// if it does in another way.
std::optional<int64_t> factorOf(int64_t atA, int64_t rowsA, int64_t atB,
                                int64_t rowsB) {
  if (atA == atB)
    return 0;
  if (atA % rowsA == 0 && atB % rowsB == 0 && atA / rowsA == atB / rowsB)
    return atA / rowsA;
  return std::nullopt;
}

} // namespace

std::optional<Graph> inferBatch(const Graph &a, const Graph &b) {
  if (a.values.size() != b.values.size() || a.ops.size() != b.ops.size() ||
      a.counts.size() != b.counts.size())
    return std::nullopt;
  for (size_t id = 0; id < a.ops.size(); ++id)
    if (!sameOp(a.ops[id], b.ops[id]))
      return std::nullopt;
  Graph result = a;
  for (size_t id = 0; id < a.values.size(); ++id) {
    const Value &left = a.values[id], &right = b.values[id];
    if (left.kind != right.kind || left.type != right.type ||
        left.shape.size() != right.shape.size() ||
        left.cotangentOf != right.cotangentOf)
      return std::nullopt;
    for (size_t dim = 0; dim < left.shape.size(); ++dim) {
      auto factor =
          factorOf(left.shape[dim], a.unitRows, right.shape[dim], b.unitRows);
      if (!factor)
        return std::nullopt;
      result.values[id].batch[dim] = *factor;
    }
  }
  for (size_t i = 0; i < a.counts.size(); ++i) {
    // A mean over what does not grow with the unit is not one over rows.
    if (a.counts[i].target == None && factorOf(a.counts[i].perUnit, a.unitRows,
                                               b.counts[i].perUnit, b.unitRows)
                                              .value_or(0) == 0)
      return std::nullopt;
  }
  result.dynamicBatch = true;
  return result;
}

} // namespace monarch
