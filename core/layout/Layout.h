//===- Layout.h - how a tensor lies on a mesh -----------------------------===//
//
// A dim is a concatenation of sections (fused QKV has three), each an ordered
// product of factors (a flattened [B*S] has two). A layout gives each mesh axis
// one state: replicated, partial sum, or split along one dim, at most one
// factor per section. Axes that cut the same factor form a stack, outermost
// first; the order is the layout's own. Blocks come from nested offset tables:
// an axis cuts the block that the axes outside it left. The index lists per
// rank are the oracle: where no block is empty, two layouts without partials
// are equal iff the lists are.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace monarch {

struct Section {
  int64_t begin = 0;
  int64_t end = 0;
  /// Outermost first, each > 1; their product is end - begin (empty: size 1).
  std::vector<int64_t> factors;
  auto operator<=>(const Section &) const = default;
};

/// Sections in order, gapless from 0 to size.
struct DimStructure {
  int64_t size = 0;
  std::vector<Section> sections;
  auto operator<=>(const DimStructure &) const = default;
};
using TensorStructure = std::vector<DimStructure>;

/// One section, its factors = {size} (none when size is 1; no section when the
/// size is 0).
DimStructure plainDim(int64_t size);

/// What a mesh axis is for. Data axes hand out units: ranks along them run
/// different units, so activations know no state there; only parameters,
/// accumulators and what the step makes of them do.
enum class AxisRole : uint8_t { Data, Tensor };

struct MeshAxis {
  std::string name;
  int64_t size = 1;
  AxisRole role = AxisRole::Tensor;
  auto operator<=>(const MeshAxis &) const = default;
};

/// Axes of one stage, outermost first; sizes are primes. A rank of the world is
/// stage * size() + row-major coordinates.
struct Mesh {
  std::vector<MeshAxis> axes;
  int64_t size() const;
  std::vector<int64_t> coordinates(int64_t rankInStage) const;
  int64_t rankInStage(const std::vector<int64_t> &coordinates) const;
  auto operator<=>(const Mesh &) const = default;
};

/// Where blocks of an extent begin when it is cut in n parts: n + 1 offsets,
/// non-decreasing, 0 first, extent last. Even (floor(extent*i/n)) unless set;
/// setting the even table removes the exception.
class OffsetTables {
public:
  std::vector<int64_t> offsets(int64_t extent, int64_t parts) const;
  /// Begin and end of one part: offsets()[index] and offsets()[index + 1].
  std::pair<int64_t, int64_t> block(int64_t extent, int64_t parts,
                                    int64_t index) const;
  void set(int64_t extent, int64_t parts, std::vector<int64_t> offsets);
  const std::map<std::pair<int64_t, int64_t>, std::vector<int64_t>> &
  exceptions() const {
    return tables;
  }

private:
  std::map<std::pair<int64_t, int64_t>, std::vector<int64_t>> tables;
};

enum class AxisStateKind : uint8_t { Replicated, Partial, Split };

struct AxisState {
  AxisStateKind kind = AxisStateKind::Replicated;
  /// Split: the dim, and for each section of it the factor that is cut. A
  /// section of size 1 has no factor to cut: its dim cannot be split, so that
  /// the blocks of a split are always disjoint.
  int dim = -1;
  std::vector<int> factors;
  auto operator<=>(const AxisState &) const = default;

  static AxisState replicated() { return {}; }
  static AxisState partial() { return {AxisStateKind::Partial, -1, {}}; }
  static AxisState split(int dim, std::vector<int> factors) {
    return {AxisStateKind::Split, dim, std::move(factors)};
  }
  bool isReplicated() const { return kind == AxisStateKind::Replicated; }
  bool isPartial() const { return kind == AxisStateKind::Partial; }
  bool isSplit() const { return kind == AxisStateKind::Split; }
};

struct Layout {
  /// One state per mesh axis.
  std::vector<AxisState> states;
  /// A permutation of the axes: of two axes on one factor the earlier cuts
  /// outside. Canonical (see `canonical`), so that == compares layouts.
  std::vector<int> order;
  auto operator<=>(const Layout &) const = default;

  static Layout replicated(size_t axes);
};

/// True when the layout is canonical and its states exist on this mesh and this
/// tensor. All functions that take a layout and a structure require it.
bool fits(const Layout &layout, const TensorStructure &structure,
          const Mesh &mesh);

/// Lowest-axis-first order among those that keep every stack as it is.
Layout canonical(Layout layout);
/// Axes that cut this factor, outermost first.
std::vector<int> stackOf(const Layout &layout, int dim, int section,
                         int factor);
/// True when the axis is innermost on each factor that it cuts (only then may
/// it be gathered, sliced or exchanged); true for replicated and partial.
bool isInnermost(const Layout &layout, int axis);
/// The layout with one axis in another state, entered innermost.
Layout withState(const Layout &layout, int axis, AxisState state);

/// Global indices along a dim that a rank holds, in the order it holds them.
/// They tell apart all splits into non-empty blocks, not a partial sum from its
/// replica.
std::vector<int64_t> localIndices(const DimStructure &structure, int dim,
                                  const Layout &layout, const Mesh &mesh,
                                  const OffsetTables &tables,
                                  const std::vector<int64_t> &coordinates);
std::vector<int64_t> localShape(const TensorStructure &structure,
                                const Layout &layout, const Mesh &mesh,
                                const OffsetTables &tables,
                                const std::vector<int64_t> &coordinates);

/// "[S(1:0.2), R, P]": dim:factor per section, with the order when it matters.
std::string toString(const Layout &layout);

} // namespace monarch
