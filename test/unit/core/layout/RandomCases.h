//===- RandomCases.h - random meshes, structures, tables and layouts ------===//
//
// What the tests of layouts draw from. All draws come from one seed, which each
// test prints with a failure; small extents, so that blocks are often uneven
// and sometimes empty.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/layout/Layout.h"

#include <algorithm>
#include <numeric>
#include <random>

namespace monarch::test {

class Random {
public:
  explicit Random(uint32_t seed) : engine(seed) {}
  /// In [low, high].
  int64_t in(int64_t low, int64_t high) {
    return low + int64_t(engine() % uint64_t(high - low + 1));
  }
  bool chance(int percent) { return in(0, 99) < percent; }

private:
  std::mt19937 engine;
};

inline Mesh meshOf(const std::vector<int64_t> &sizes) {
  Mesh mesh;
  for (int64_t size : sizes)
    mesh.axes.push_back(
        {"t" + std::to_string(mesh.axes.size()), size, AxisRole::Tensor});
  return mesh;
}

inline Mesh randomMesh(Random &random) {
  static const std::vector<std::vector<int64_t>> meshes = {
      {2}, {3}, {2, 2}, {2, 2, 2}, {3, 2}, {5}, {7}};
  return meshOf(meshes[random.in(0, int64_t(meshes.size()) - 1)]);
}

/// Sections of at most three factors; every extent is `unit` times 1 to
/// `maxFactor / unit` (so divisible by `unit`), or, with unit 1, at least 2.
inline DimStructure randomDim(Random &random, int64_t unit, int64_t maxFactor) {
  DimStructure dim;
  int64_t sections = random.chance(50) ? 1 : random.in(2, 3);
  for (int64_t s = 0; s < sections; ++s) {
    Section section{dim.size, dim.size + 1, {}};
    int64_t factors =
        unit == 1 && random.chance(5) ? 0 : (random.chance(50) ? 1 : 2);
    for (int64_t f = 0; f < factors; ++f) {
      int64_t extent = unit == 1 ? random.in(2, maxFactor)
                                 : unit * random.in(1, maxFactor / unit);
      section.factors.push_back(extent);
      section.end = section.begin + (section.end - section.begin) * extent;
    }
    dim.size = section.end;
    dim.sections.push_back(section);
  }
  return dim;
}

inline bool canSplit(const DimStructure &dim) {
  return !dim.sections.empty() &&
         std::none_of(dim.sections.begin(), dim.sections.end(),
                      [](const Section &s) { return s.factors.empty(); });
}

/// One to three dims, at most `maxElements` in all.
inline TensorStructure randomStructure(Random &random, int64_t maxElements) {
  TensorStructure structure;
  int64_t elements = 1;
  int64_t dims = random.in(1, 3);
  while (int64_t(structure.size()) < dims) {
    DimStructure dim = random.chance(5) ? plainDim(1) : randomDim(random, 1, 7);
    if (elements * dim.size > maxElements) {
      if (structure.empty())
        continue;
      break;
    }
    elements *= dim.size;
    structure.push_back(dim);
  }
  return structure;
}

/// Even, ceil and arbitrary tables (with empty parts) side by side.
inline OffsetTables randomTables(Random &random, const Mesh &mesh,
                                 int64_t maxExtent) {
  OffsetTables tables;
  for (const MeshAxis &axis : mesh.axes)
    for (int64_t extent = 0; extent <= maxExtent; ++extent) {
      std::vector<int64_t> offsets;
      int64_t kind = random.in(0, 2);
      if (kind == 0)
        continue;
      int64_t block = (extent + axis.size - 1) / axis.size;
      for (int64_t i = 0; i <= axis.size; ++i)
        offsets.push_back(kind == 1 ? std::min(extent, block * i)
                                    : random.in(0, extent));
      std::sort(offsets.begin(), offsets.end());
      offsets.front() = 0;
      offsets.back() = extent;
      tables.set(extent, axis.size, offsets);
    }
  return tables;
}

inline AxisState randomSplit(Random &random, const TensorStructure &structure,
                             int dim) {
  std::vector<int> factors;
  for (const Section &section : structure[dim].sections)
    factors.push_back(int(random.in(0, int64_t(section.factors.size()) - 1)));
  return AxisState::split(dim, factors);
}

inline std::vector<int> randomOrder(Random &random, size_t axes) {
  std::vector<int> order(axes);
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = axes; i > 1; --i)
    std::swap(order[i - 1], order[random.in(0, int64_t(i) - 1)]);
  return order;
}

inline Layout randomLayout(Random &random, const TensorStructure &structure,
                           const Mesh &mesh, bool partials) {
  std::vector<int> dims;
  for (size_t dim = 0; dim < structure.size(); ++dim)
    if (canSplit(structure[dim]))
      dims.push_back(int(dim));
  Layout layout;
  for (size_t axis = 0; axis < mesh.axes.size(); ++axis) {
    if (!dims.empty() && random.chance(60))
      layout.states.push_back(randomSplit(
          random, structure, dims[random.in(0, int64_t(dims.size()) - 1)]));
    else if (partials && random.chance(50))
      layout.states.push_back(AxisState::partial());
    else
      layout.states.push_back(AxisState::replicated());
  }
  layout.order = randomOrder(random, mesh.axes.size());
  return canonical(layout);
}

} // namespace monarch::test
