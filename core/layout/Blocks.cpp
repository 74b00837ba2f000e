//===- Blocks.cpp - ranges, sizes and overlaps of blocks ------------------===//

#include "core/layout/Blocks.h"

#include <algorithm>
#include <cassert>

namespace monarch::detail {

std::vector<Shard::Cut> cutsOf(int dim, const Layout &layout) {
  std::vector<Shard::Cut> cuts;
  for (int axis : layout.order) {
    const AxisState &state = layout.states[axis];
    if (state.isSplit() && state.dim == dim)
      cuts.push_back({axis, state.factors});
  }
  return cuts;
}

std::vector<Range> factorRanges(const DimStructure &structure,
                                const std::vector<Shard::Cut> &cuts,
                                const Mesh &mesh, const OffsetTables &tables,
                                const std::vector<int64_t> &coordinates) {
  std::vector<Range> ranges;
  for (size_t s = 0; s < structure.sections.size(); ++s) {
    const Section &section = structure.sections[s];
    size_t first = ranges.size();
    for (int64_t extent : section.factors)
      ranges.push_back({0, extent});
    for (const Shard::Cut &cut : cuts) {
      assert(cut.factors.size() == structure.sections.size());
      assert(cut.factors[s] >= 0 &&
             size_t(cut.factors[s]) < section.factors.size());
      Range &range = ranges[first + cut.factors[s]];
      auto [begin, end] =
          tables.block(range.end - range.begin, mesh.axes[cut.axis].size,
                       coordinates[cut.axis]);
      range = {range.begin + begin, range.begin + end};
    }
  }
  return ranges;
}

int64_t overlapSize(const DimStructure &structure, const std::vector<Range> &a,
                    const std::vector<Range> &b) {
  int64_t sum = 0;
  size_t next = 0;
  for (const Section &section : structure.sections) {
    int64_t product = 1;
    for (size_t f = 0; f < section.factors.size(); ++f, ++next)
      product *=
          std::max<int64_t>(0, std::min(a[next].end, b[next].end) -
                                   std::max(a[next].begin, b[next].begin));
    sum += product;
  }
  return sum;
}

int64_t blockSize(const DimStructure &structure,
                  const std::vector<Range> &ranges) {
  return overlapSize(structure, ranges, ranges);
}

std::vector<int64_t> blockIndices(const DimStructure &structure,
                                  const std::vector<Range> &ranges) {
  std::vector<int64_t> result;
  result.reserve(blockSize(structure, ranges));
  std::vector<int64_t> outer, inner;
  size_t next = 0;
  for (const Section &section : structure.sections) {
    outer.assign(1, 0);
    for (int64_t extent : section.factors) {
      const Range &range = ranges[next++];
      inner.clear();
      for (int64_t base : outer)
        for (int64_t i = range.begin; i < range.end; ++i)
          inner.push_back(base * extent + i);
      std::swap(outer, inner);
    }
    for (int64_t index : outer)
      result.push_back(section.begin + index);
  }
  return result;
}

bool sharesFactor(const AxisState &a, const AxisState &b) {
  if (!a.isSplit() || !b.isSplit() || a.dim != b.dim)
    return false;
  for (size_t s = 0; s < a.factors.size() && s < b.factors.size(); ++s)
    if (a.factors[s] == b.factors[s])
      return true;
  return false;
}

} // namespace monarch::detail
