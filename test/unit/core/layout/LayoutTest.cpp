//===- LayoutTest.cpp - meshes, offset tables, layouts --------------------===//

#include "core/layout/Layout.h"
#include "test/unit/core/layout/RandomCases.h"

#include <catch2/catch.hpp>

#include <set>

using namespace monarch;
using namespace monarch::test;

using Coordinates = std::vector<int64_t>;

/// The indices that a rank holds, decided for each index by itself.
static std::vector<int64_t> bruteForceIndices(const DimStructure &structure,
                                              int dim, const Layout &layout,
                                              const Mesh &mesh,
                                              const OffsetTables &tables,
                                              const Coordinates &coordinates) {
  std::vector<int64_t> held;
  for (int64_t index = 0; index < structure.size; ++index) {
    bool isHeld = true;
    for (size_t s = 0; s < structure.sections.size(); ++s) {
      const Section &section = structure.sections[s];
      if (index < section.begin || index >= section.end)
        continue;
      int64_t inner = section.end - section.begin;
      int64_t rest = index - section.begin;
      for (size_t f = 0; f < section.factors.size(); ++f) {
        inner /= section.factors[f];
        int64_t digit = rest / inner;
        rest %= inner;
        int64_t extent = section.factors[f];
        for (int axis : stackOf(layout, dim, int(s), int(f))) {
          std::vector<int64_t> offsets =
              tables.offsets(extent, mesh.axes[axis].size);
          digit -= offsets[coordinates[axis]];
          extent = offsets[coordinates[axis] + 1] - offsets[coordinates[axis]];
          isHeld = isHeld && digit >= 0 && digit < extent;
        }
      }
    }
    if (isHeld)
      held.push_back(index);
  }
  return held;
}

static std::vector<std::vector<int64_t>>
allLists(const TensorStructure &structure, const Layout &layout,
         const Mesh &mesh, const OffsetTables &tables) {
  std::vector<std::vector<int64_t>> lists;
  for (int64_t rank = 0; rank < mesh.size(); ++rank)
    for (size_t dim = 0; dim < structure.size(); ++dim)
      lists.push_back(localIndices(structure[dim], int(dim), layout, mesh,
                                   tables, mesh.coordinates(rank)));
  return lists;
}

TEST_CASE("a rank and its coordinates determine each other, row-major") {
  Mesh mesh = meshOf({3, 2, 5});
  REQUIRE(mesh.size() == 30);
  REQUIRE(mesh.coordinates(13) == Coordinates{1, 0, 3});
  for (int64_t rank = 0; rank < mesh.size(); ++rank)
    REQUIRE(mesh.rankInStage(mesh.coordinates(rank)) == rank);
  REQUIRE(meshOf({}).size() == 1);
}

TEST_CASE("offset tables are even unless set") {
  OffsetTables tables;
  REQUIRE(tables.offsets(7, 3) == std::vector<int64_t>{0, 2, 4, 7});
  REQUIRE(tables.offsets(1, 3) == std::vector<int64_t>{0, 0, 0, 1});
  tables.set(7, 3, {0, 7, 7, 7});
  REQUIRE(tables.offsets(7, 3) == std::vector<int64_t>{0, 7, 7, 7});
  REQUIRE(tables.block(7, 3, 1) == std::pair<int64_t, int64_t>(7, 7));
  REQUIRE(tables.offsets(7, 2) == std::vector<int64_t>{0, 3, 7});
  REQUIRE(tables.exceptions().size() == 1);
  tables.set(7, 3, {0, 2, 4, 7});
  REQUIRE(tables.exceptions().empty());
}

TEST_CASE("plain dims have one factor unless there is nothing to cut") {
  REQUIRE(plainDim(6).sections == std::vector<Section>{{0, 6, {6}}});
  REQUIRE(plainDim(1).sections == std::vector<Section>{{0, 1, {}}});
  REQUIRE(plainDim(0).sections.empty());
}

TEST_CASE("a split by heads of a fused QKV takes the heads of each section") {
  // q has 4 heads of 2, k and v have 2 heads of 2.
  DimStructure dim{16, {{0, 8, {4, 2}}, {8, 12, {2, 2}}, {12, 16, {2, 2}}}};
  Mesh mesh = meshOf({2});
  Layout layout =
      withState(Layout::replicated(1), 0, AxisState::split(0, {0, 0, 0}));
  REQUIRE(localIndices(dim, 0, layout, mesh, {}, {1}) ==
          std::vector<int64_t>{4, 5, 6, 7, 10, 11, 14, 15});
  Layout inner =
      withState(Layout::replicated(1), 0, AxisState::split(0, {1, 0, 1}));
  REQUIRE(localIndices(dim, 0, inner, mesh, {}, {0}) ==
          std::vector<int64_t>{0, 2, 4, 6, 8, 9, 12, 14});
}

TEST_CASE("an axis cuts the block that the axes outside it left") {
  // 5 by ceil blocks: 3, 2. Of the 3: 2, 1. No refinement of 5 by 4.
  OffsetTables tables;
  tables.set(5, 2, {0, 3, 5});
  tables.set(3, 2, {0, 2, 3});
  Mesh mesh = meshOf({2, 2});
  Layout layout = Layout::replicated(2);
  layout = withState(layout, 0, AxisState::split(0, {0}));
  layout = withState(layout, 1, AxisState::split(0, {0}));
  auto list = [&](const Layout &of, int64_t a, int64_t b) {
    return localIndices(plainDim(5), 0, of, mesh, tables, {a, b});
  };
  REQUIRE(list(layout, 0, 0) == std::vector<int64_t>{0, 1});
  REQUIRE(list(layout, 0, 1) == std::vector<int64_t>{2});
  REQUIRE(list(layout, 1, 0) == std::vector<int64_t>{3});
  REQUIRE(list(layout, 1, 1) == std::vector<int64_t>{4});
  Layout swapped = layout;
  swapped.order = {1, 0};
  REQUIRE(list(swapped, 1, 0) == std::vector<int64_t>{2});
  REQUIRE(stackOf(swapped, 0, 0, 0) == std::vector<int>{1, 0});
  REQUIRE(isInnermost(swapped, 0));
  REQUIRE_FALSE(isInnermost(swapped, 1));
  REQUIRE(stackOf(layout, 0, 0, 0) == std::vector<int>{0, 1});
}

TEST_CASE("a new state enters innermost and order is kept only in stacks") {
  Layout layout = Layout::replicated(3);
  layout = withState(layout, 2, AxisState::split(0, {0}));
  REQUIRE(layout.order == std::vector<int>{0, 1, 2});
  layout = withState(layout, 0, AxisState::split(0, {0}));
  REQUIRE(layout.order == std::vector<int>{1, 2, 0});
  layout = withState(layout, 1, AxisState::split(1, {0}));
  REQUIRE(layout.order == std::vector<int>{1, 2, 0});
  layout = withState(layout, 0, AxisState::split(1, {0}));
  REQUIRE(layout.order == std::vector<int>{1, 0, 2});
  REQUIRE(toString(layout) == "[S(1:0), S(1:0), S(0:0)] order 1.0.2");
  layout = withState(layout, 1, AxisState::partial());
  REQUIRE(toString(layout) == "[S(1:0), P, S(0:0)]");
}

TEST_CASE("index lists are what nested cuts of each index say") {
  for (uint32_t seed = 1; seed <= 400; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    Mesh mesh = randomMesh(random);
    TensorStructure structure = randomStructure(random, 2000);
    OffsetTables tables = randomTables(random, mesh, 7);
    Layout layout = randomLayout(random, structure, mesh, true);
    CAPTURE(toString(layout));
    REQUIRE(fits(layout, structure, mesh));
    for (int64_t rank = 0; rank < mesh.size(); ++rank) {
      Coordinates at = mesh.coordinates(rank);
      std::vector<int64_t> shape =
          localShape(structure, layout, mesh, tables, at);
      for (size_t dim = 0; dim < structure.size(); ++dim) {
        std::vector<int64_t> list =
            localIndices(structure[dim], int(dim), layout, mesh, tables, at);
        REQUIRE(list == bruteForceIndices(structure[dim], int(dim), layout,
                                          mesh, tables, at));
        REQUIRE(int64_t(list.size()) == shape[dim]);
      }
    }
  }
}

TEST_CASE("canonical keeps the stacks, is idempotent and unique") {
  for (uint32_t seed = 1; seed <= 400; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    Mesh mesh = meshOf({2, 2, 2, 2, 2});
    TensorStructure structure = randomStructure(random, 2000);
    Layout layout = randomLayout(random, structure, mesh, true);
    REQUIRE(canonical(layout) == layout);
    Layout shuffled = layout;
    shuffled.order = randomOrder(random, mesh.axes.size());
    Layout result = canonical(shuffled);
    REQUIRE(canonical(result) == result);
    REQUIRE(result.states == layout.states);
    bool sameStacks = true;
    for (size_t dim = 0; dim < structure.size(); ++dim)
      for (size_t s = 0; s < structure[dim].sections.size(); ++s)
        for (size_t f = 0; f < structure[dim].sections[s].factors.size(); ++f) {
          auto stack = [&](const Layout &of) {
            return stackOf(of, int(dim), int(s), int(f));
          };
          REQUIRE(stack(result) == stack(shuffled));
          sameStacks = sameStacks && stack(result) == stack(layout);
        }
    REQUIRE(sameStacks == (result == layout));
    REQUIRE((toString(result) == toString(layout)) == (result == layout));
  }
}

// Blocks must not be empty: with an empty one, [a,b] and [b,a] may hold the
// same. Index lists do not show partial sums either.
TEST_CASE("layouts without partials are equal iff their index lists are") {
  int equal = 0, different = 0;
  for (uint32_t seed = 1; seed <= 600; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    Mesh mesh = randomMesh(random);
    TensorStructure structure;
    for (int64_t dims = random.in(1, 2); dims > 0; --dims)
      structure.push_back(randomDim(random, mesh.size(), 2 * mesh.size()));
    Layout a = randomLayout(random, structure, mesh, false);
    Layout b = a;
    if (random.chance(50))
      b = randomLayout(random, structure, mesh, false);
    else
      b.order = randomOrder(random, mesh.axes.size());
    b = canonical(b);
    CAPTURE(toString(a), toString(b));
    bool sameLists =
        allLists(structure, a, mesh, {}) == allLists(structure, b, mesh, {});
    REQUIRE(sameLists == (a == b));
    ++(sameLists ? equal : different);
  }
  REQUIRE(equal > 100);
  REQUIRE(different > 100);
}

TEST_CASE("distinct layouts have distinct texts") {
  Random random(7);
  Mesh mesh = meshOf({2, 2, 2});
  TensorStructure structure = {
      DimStructure{10, {{0, 4, {2, 2}}, {4, 10, {2, 3}}}}, plainDim(4)};
  std::set<Layout> layouts;
  std::set<std::string> texts;
  for (int i = 0; i < 5000; ++i) {
    Layout layout = randomLayout(random, structure, mesh, true);
    layouts.insert(layout);
    texts.insert(toString(layout));
  }
  REQUIRE(layouts.size() > 300);
  REQUIRE(texts.size() == layouts.size());
}

TEST_CASE("a layout fits only its mesh and its tensor") {
  Mesh mesh = meshOf({2, 2});
  TensorStructure structure = {DimStructure{5, {{0, 4, {2, 2}}, {4, 5, {}}}},
                               plainDim(4)};
  Layout whole = Layout::replicated(2);
  REQUIRE(fits(whole, structure, mesh));
  auto with = [&](AxisState state) { return withState(whole, 0, state); };
  REQUIRE(fits(with(AxisState::split(1, {0})), structure, mesh));
  // No such dim, no such factor, a missing section, a section of size 1.
  REQUIRE_FALSE(fits(with(AxisState::split(2, {0})), structure, mesh));
  REQUIRE_FALSE(fits(with(AxisState::split(1, {1})), structure, mesh));
  REQUIRE_FALSE(fits(with(AxisState::split(1, {})), structure, mesh));
  REQUIRE_FALSE(fits(with(AxisState::split(0, {0, -1})), structure, mesh));
  REQUIRE_FALSE(fits(with(AxisState::split(0, {0, 0})), structure, mesh));
  REQUIRE_FALSE(fits(Layout::replicated(1), structure, mesh));
  Layout twice = whole;
  twice.order = {0, 0};
  REQUIRE_FALSE(fits(twice, structure, mesh));
  Layout notCanonical = whole;
  notCanonical.order = {1, 0};
  REQUIRE_FALSE(fits(notCanonical, structure, mesh));
}
