//===- DimClasses.h - dims that have one structure ------------------------===//
//
// Union-find over dims. Each class has sections (a dim is their concatenation)
// and per section a divisor chain of suffix products (a section is a product
// of factors). Facts only accumulate, and what contradicts an earlier fact is
// refused: first come wins. Use in this order: merge everything, then cut, then
// add suffixes; so a cut never meets a chain.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/layout/Layout.h"

namespace monarch {

class DimClasses {
public:
  struct SectionChain {
    int64_t begin = 0;
    int64_t end = 0;
    /// Suffix products strictly between 1 and the size, ascending; each divides
    /// the next and the size.
    std::vector<int64_t> suffixes;
  };

  int add(int64_t size);
  int find(int dim) const;
  int64_t size(int dim) const { return classes[find(dim)].size; }
  const std::vector<SectionChain> &sections(int dim) const {
    return classes[find(dim)].sections;
  }
  bool isCut(int dim) const { return sections(dim).size() > 1; }

  /// Both have one structure from now on. Sizes are equal.
  void merge(int a, int b);
  /// A section begins here. A cut that would leave a section of size 1 is
  /// refused: such a dim could not be split at all, and the cut would take that
  /// from every dim of the class. So is a cut into more than a few sections.
  void addCut(int dim, int64_t position);
  bool hasBorder(int dim, int64_t position) const;
  /// The factors right of some border inside the section multiply to this.
  void addSuffix(int dim, size_t section, int64_t suffix);

  /// True once after facts were added.
  bool takeChanged() { return std::exchange(changed, false); }
  DimStructure structure(int dim) const;

private:
  struct Class {
    int64_t size = 0;
    std::vector<SectionChain> sections;
  };
  std::vector<Class> classes;
  mutable std::vector<int> parents;
  bool changed = false;
};

} // namespace monarch
