//===- Layout.cpp - meshes, offset tables, layouts ------------------------===//

#include "core/layout/Layout.h"

#include "core/layout/Blocks.h"

#include <algorithm>
#include <cassert>
#include <numeric>

#include <fmt/format.h>

using namespace monarch;

DimStructure monarch::plainDim(int64_t size) {
  DimStructure dim{size, {}};
  if (size == 1)
    dim.sections.push_back({0, 1, {}});
  else if (size > 1)
    dim.sections.push_back({0, size, {size}});
  return dim;
}

//===----------------------------------------------------------------------===//
// Mesh
//===----------------------------------------------------------------------===//

int64_t Mesh::size() const {
  int64_t product = 1;
  for (const MeshAxis &axis : axes)
    product *= axis.size;
  return product;
}

std::vector<int64_t> Mesh::coordinates(int64_t rankInStage) const {
  assert(rankInStage >= 0 && rankInStage < size());
  std::vector<int64_t> result(axes.size());
  for (size_t i = axes.size(); i-- > 0;) {
    result[i] = rankInStage % axes[i].size;
    rankInStage /= axes[i].size;
  }
  return result;
}

int64_t Mesh::rankInStage(const std::vector<int64_t> &coordinates) const {
  assert(coordinates.size() == axes.size());
  int64_t rank = 0;
  for (size_t i = 0; i < axes.size(); ++i)
    rank = rank * axes[i].size + coordinates[i];
  return rank;
}

//===----------------------------------------------------------------------===//
// OffsetTables
//===----------------------------------------------------------------------===//

std::pair<int64_t, int64_t> OffsetTables::block(int64_t extent, int64_t parts,
                                                int64_t index) const {
  assert(extent >= 0 && index >= 0 && index < parts);
  if (!tables.empty())
    if (auto it = tables.find({extent, parts}); it != tables.end())
      return {it->second[index], it->second[index + 1]};
  return {extent * index / parts, extent * (index + 1) / parts};
}

std::vector<int64_t> OffsetTables::offsets(int64_t extent,
                                           int64_t parts) const {
  std::vector<int64_t> result{0};
  for (int64_t i = 0; i < parts; ++i)
    result.push_back(block(extent, parts, i).second);
  return result;
}

void OffsetTables::set(int64_t extent, int64_t parts,
                       std::vector<int64_t> offsets) {
  assert(parts >= 1 && int64_t(offsets.size()) == parts + 1);
  assert(offsets.front() == 0 && offsets.back() == extent);
  assert(std::is_sorted(offsets.begin(), offsets.end()));
  tables.erase({extent, parts});
  if (offsets != this->offsets(extent, parts))
    tables.emplace(std::pair(extent, parts), std::move(offsets));
}

//===----------------------------------------------------------------------===//
// Layout
//===----------------------------------------------------------------------===//

Layout Layout::replicated(size_t axes) {
  Layout layout;
  layout.states.resize(axes);
  layout.order.resize(axes);
  std::iota(layout.order.begin(), layout.order.end(), 0);
  return layout;
}

bool monarch::fits(const Layout &layout, const TensorStructure &structure,
                   const Mesh &mesh) {
  size_t axes = mesh.axes.size();
  if (layout.states.size() != axes || layout.order.size() != axes)
    return false;
  std::vector<bool> seen(axes, false);
  for (int axis : layout.order) {
    if (axis < 0 || size_t(axis) >= axes || seen[axis])
      return false;
    seen[axis] = true;
  }
  for (const AxisState &state : layout.states) {
    if (!state.isSplit()) {
      if (state.dim != -1 || !state.factors.empty())
        return false;
      continue;
    }
    if (state.dim < 0 || size_t(state.dim) >= structure.size())
      return false;
    const std::vector<Section> &sections = structure[state.dim].sections;
    if (sections.empty() || state.factors.size() != sections.size())
      return false;
    for (size_t s = 0; s < sections.size(); ++s)
      if (state.factors[s] < 0 ||
          size_t(state.factors[s]) >= sections[s].factors.size())
        return false;
  }
  return layout == canonical(layout);
}

Layout monarch::canonical(Layout layout) {
  layout.order = detail::canonicalOrder(layout.order, [&](int a, int b) {
    return detail::sharesFactor(layout.states[a], layout.states[b]);
  });
  return layout;
}

std::vector<int> monarch::stackOf(const Layout &layout, int dim, int section,
                                  int factor) {
  std::vector<int> stack;
  for (int axis : layout.order) {
    const AxisState &state = layout.states[axis];
    if (state.isSplit() && state.dim == dim && state.factors[section] == factor)
      stack.push_back(axis);
  }
  return stack;
}

bool monarch::isInnermost(const Layout &layout, int axis) {
  for (size_t i = layout.order.size(); i-- > 0;) {
    int other = layout.order[i];
    if (other == axis)
      return true;
    if (detail::sharesFactor(layout.states[axis], layout.states[other]))
      return false;
  }
  return true;
}

Layout monarch::withState(const Layout &layout, int axis, AxisState state) {
  Layout result = layout;
  result.states[axis] = std::move(state);
  std::erase(result.order, axis);
  result.order.push_back(axis);
  return canonical(std::move(result));
}

std::vector<int64_t>
monarch::localIndices(const DimStructure &structure, int dim,
                      const Layout &layout, const Mesh &mesh,
                      const OffsetTables &tables,
                      const std::vector<int64_t> &coordinates) {
  return detail::blockIndices(
      structure, detail::factorRanges(structure, detail::cutsOf(dim, layout),
                                      mesh, tables, coordinates));
}

std::vector<int64_t>
monarch::localShape(const TensorStructure &structure, const Layout &layout,
                    const Mesh &mesh, const OffsetTables &tables,
                    const std::vector<int64_t> &coordinates) {
  std::vector<int64_t> shape;
  for (size_t dim = 0; dim < structure.size(); ++dim)
    shape.push_back(detail::blockSize(
        structure[dim],
        detail::factorRanges(structure[dim], detail::cutsOf(dim, layout), mesh,
                             tables, coordinates)));
  return shape;
}

std::string monarch::toString(const Layout &layout) {
  std::vector<std::string> states;
  for (const AxisState &state : layout.states)
    states.push_back(state.isReplicated() ? "R"
                     : state.isPartial()
                         ? "P"
                         : fmt::format("S({}:{})", state.dim,
                                       fmt::join(state.factors, ".")));
  std::string text = fmt::format("[{}]", fmt::join(states, ", "));
  if (!std::is_sorted(layout.order.begin(), layout.order.end()))
    text += fmt::format(" order {}", fmt::join(layout.order, "."));
  return text;
}
