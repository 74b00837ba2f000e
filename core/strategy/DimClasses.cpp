//===- DimClasses.cpp - dims that have one structure ----------------------===//

#include "core/strategy/DimClasses.h"

#include <algorithm>
#include <cassert>

namespace monarch {

/// Shifted sums (x[:-2] + x[2:]) would cut a dim again and again.
static constexpr size_t maxSections = 16;

int DimClasses::add(int64_t size) {
  classes.push_back({size, {{0, size, {}}}});
  parents.push_back(static_cast<int>(parents.size()));
  return parents.back();
}

int DimClasses::find(int dim) const {
  while (parents[dim] != dim)
    dim = parents[dim] = parents[parents[dim]];
  return dim;
}

void DimClasses::merge(int a, int b) {
  a = find(a);
  b = find(b);
  if (a == b)
    return;
  assert(classes[a].size == classes[b].size);
  assert(!isCut(a) && !isCut(b) && "merges come before cuts");
  // The earlier dim stands for the class: results do not depend on the order.
  parents[std::max(a, b)] = std::min(a, b);
}

bool DimClasses::hasBorder(int dim, int64_t position) const {
  const std::vector<SectionChain> &list = sections(dim);
  return position == list.back().end ||
         std::any_of(list.begin(), list.end(), [&](const SectionChain &s) {
           return s.begin == position;
         });
}

void DimClasses::addCut(int dim, int64_t position) {
  std::vector<SectionChain> &list = classes[find(dim)].sections;
  if (list.size() == maxSections)
    return;
  for (size_t i = 0; i < list.size(); ++i) {
    SectionChain &section = list[i];
    if (position - section.begin < 2 || section.end - position < 2)
      continue;
    assert(section.suffixes.empty() && "cuts come before suffixes");
    int64_t end = std::exchange(section.end, position);
    list.insert(list.begin() + i + 1, {position, end, {}});
    changed = true;
    return;
  }
}

void DimClasses::addSuffix(int dim, size_t section, int64_t suffix) {
  SectionChain &chain = classes[find(dim)].sections[section];
  int64_t size = chain.end - chain.begin;
  if (suffix <= 1 || suffix >= size || size % suffix != 0)
    return;
  auto above =
      std::lower_bound(chain.suffixes.begin(), chain.suffixes.end(), suffix);
  if (above != chain.suffixes.end() && *above % suffix != 0)
    return;
  if (above != chain.suffixes.begin() && suffix % *std::prev(above) != 0)
    return;
  if (above != chain.suffixes.end() && *above == suffix)
    return;
  chain.suffixes.insert(above, suffix);
  changed = true;
}

DimStructure DimClasses::structure(int dim) const {
  DimStructure result;
  result.size = size(dim);
  if (result.size == 0)
    return result;
  for (const SectionChain &chain : sections(dim)) {
    Section section{chain.begin, chain.end, {}};
    int64_t rest = chain.end - chain.begin;
    for (auto suffix = chain.suffixes.rbegin(); suffix != chain.suffixes.rend();
         ++suffix) {
      section.factors.push_back(rest / *suffix);
      rest = *suffix;
    }
    if (rest > 1)
      section.factors.push_back(rest);
    result.sections.push_back(std::move(section));
  }
  return result;
}

} // namespace monarch
