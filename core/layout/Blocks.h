//===- Blocks.h - the arithmetic under layouts ----------------------------===//
//
// Private to core/layout. A rank's block of a dim is one range per factor, so
// sizes and overlaps are products of range lengths, sums over sections: index
// lists are needed only where somebody indexes with them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/layout/Expr.h"

namespace monarch::detail {

struct Range {
  int64_t begin = 0;
  int64_t end = 0;
};

/// Axes that cut a dim, outermost first.
std::vector<Shard::Cut> cutsOf(int dim, const Layout &layout);

/// The range held of each factor, sections in order, factors outermost first.
/// Each cut takes its part of the block that the cuts before it left.
std::vector<Range> factorRanges(const DimStructure &structure,
                                const std::vector<Shard::Cut> &cuts,
                                const Mesh &mesh, const OffsetTables &tables,
                                const std::vector<int64_t> &coordinates);

/// Indices of a dim that lie in both blocks.
int64_t overlapSize(const DimStructure &structure, const std::vector<Range> &a,
                    const std::vector<Range> &b);
int64_t blockSize(const DimStructure &structure,
                  const std::vector<Range> &ranges);
/// Ascending in each section, hence in row-major order over its factors.
std::vector<int64_t> blockIndices(const DimStructure &structure,
                                  const std::vector<Range> &ranges);

/// True when both states cut one factor, so that they form a stack.
bool sharesFactor(const AxisState &a, const AxisState &b);

/// The lowest-axis-first order of 0..n-1 in which every two axes that share a
/// factor stand as they do in `order`.
template <typename Order, typename Shares>
Order canonicalOrder(const Order &order, const Shares &shares) {
  size_t n = order.size();
  Order position = order, result = order;
  for (size_t i = 0; i < n; ++i)
    position[order[i]] = i;
  std::vector<bool> placed(n, false);
  for (size_t next = 0; next < n; ++next)
    for (size_t axis = 0; axis < n; ++axis) {
      if (placed[axis])
        continue;
      bool isFree = true;
      for (size_t other = 0; other < n && isFree; ++other)
        isFree = placed[other] || position[other] >= position[axis] ||
                 !shares(int(axis), int(other));
      if (!isFree)
        continue;
      placed[axis] = true;
      result[next] = axis;
      break;
    }
  return result;
}

} // namespace monarch::detail
