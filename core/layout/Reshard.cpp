//===- Reshard.cpp - the cheapest move sequence ---------------------------===//
//
// A* over the candidate states of each axis and the order of the stacks. Costs
// are sums over the ranks of the stage, in elements, and need no enumeration of
// ranks but for all-to-all: the blocks of a split tile what they cut, so local
// sizes sum up to numel * (product of the sizes of the axes that do not split).
//
//===----------------------------------------------------------------------===//

#include "core/layout/Reshard.h"

#include "core/layout/Blocks.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <queue>
#include <unordered_map>
#include <unordered_set>

using namespace monarch;

static MoveKind moveKind(const AxisState &from, const AxisState &to) {
  assert(from != to);
  if (from.isPartial())
    return to.isSplit() ? MoveKind::ReduceScatter : MoveKind::AllReduce;
  if (from.isReplicated())
    return to.isSplit() ? MoveKind::Slice : MoveKind::Zero;
  if (to.isPartial())
    return MoveKind::Embed;
  return to.isSplit() ? MoveKind::AllToAll : MoveKind::AllGather;
}

namespace {

/// A layout by small numbers: per axis the index of its candidate state, and
/// the canonical order. Strings of bytes, as they hash and do not allocate.
struct Node {
  std::string states;
  std::string order;
  bool operator==(const Node &) const = default;
};

struct NodeHash {
  size_t operator()(const Node &node) const {
    std::hash<std::string> hash;
    return hash(node.states) * 31 + hash(node.order);
  }
};

/// One move: axis, kind and entered state, comparable in the order of ties: the
/// kinds that leave one state stand in MoveKind by their names.
struct Step {
  uint8_t axis;
  MoveKind kind;
  uint8_t state;
  auto operator<=>(const Step &) const = default;
};

/// A path from the source; compared by what its completion costs at least.
struct Path {
  int64_t boundElements;
  int boundCollectives;
  std::vector<Step> steps;
  int64_t elements;
  int collectives;
  Node node;
  bool operator>(const Path &other) const {
    return std::tie(boundElements, boundCollectives, steps) >
           std::tie(other.boundElements, other.boundCollectives, other.steps);
  }
};

class Search {
public:
  Search(const TensorStructure &structure, const Layout &source,
         const Layout &target, const Mesh &mesh, const OffsetTables &tables);
  std::vector<Move> run();

private:
  bool shares(int a, int stateA, int b, int stateB) const {
    return sharing[((a * 3 + stateA) * axes + b) * 3 + stateB];
  }
  const AxisState &stateOf(const Node &node, int axis) const {
    return states[axis][node.states[axis]];
  }
  bool isInnermost(const Node &node, int axis) const;
  /// `isInnermost(node, axis)` holds.
  Node enter(const Node &node, int axis, int state) const;
  Layout layoutOf(const Node &node) const;
  /// Local sizes summed over the ranks.
  int64_t volume(const Node &node) const;
  /// The same as if each axis that has a split among its candidates and is
  /// partial were split.
  int64_t replicatedVolume(const Node &node) const;
  /// What reducing the partial axes costs at least.
  int64_t leastToReduce(const Node &node) const;
  bool canSplit(int axis) const {
    return std::any_of(states[axis].begin(), states[axis].end(),
                       [](const AxisState &s) { return s.isSplit(); });
  }
  /// What a move costs, and what the rest of the path costs at least.
  int64_t elementsSent(MoveKind kind, int axis, const Node &from,
                       const Node &to);
  /// Elements that stay where they are, summed over the ranks.
  int64_t keptByAllToAll(int axis, const Node &from, const Node &to);
  /// Per coordinate on the axis that moves: indices of the dim that a rank
  /// holds before and after, summed over the other axes that cut the dim.
  const std::vector<int64_t> &overlapSums(int dim, int axis, const Node &from,
                                          const Node &to);
  bool needsCollective(const Node &node, int axis) const;
  void bound(Path &path) const;
  std::vector<Move> movesOf(const std::vector<Step> &steps) const;

  const TensorStructure &structure;
  const Mesh &mesh;
  const OffsetTables &tables;
  const Layout &source;
  int axes;
  int64_t numElements = 1;
  /// The volume if all axes that can be split are.
  int64_t leastVolume = 0;
  int64_t goalVolume = 0;
  /// Per axis: the source's state, the target's, replicated; each once.
  std::vector<std::vector<AxisState>> states;
  /// `shares`, tabled.
  std::vector<char> sharing;
  Node start, goal;
  std::unordered_map<std::string, std::vector<int64_t>> knownSums;
};

} // namespace

Search::Search(const TensorStructure &structure, const Layout &source,
               const Layout &target, const Mesh &mesh,
               const OffsetTables &tables)
    : structure(structure), mesh(mesh), tables(tables), source(source),
      axes(int(mesh.axes.size())) {
  for (const DimStructure &dim : structure)
    numElements *= dim.size;
  for (int axis = 0; axis < axes; ++axis) {
    std::vector<AxisState> &candidates = states.emplace_back();
    for (const AxisState &state :
         {source.states[axis], target.states[axis], AxisState::replicated()})
      if (std::find(candidates.begin(), candidates.end(), state) ==
          candidates.end())
        candidates.push_back(state);
    start.states += char(0);
    goal.states += char(source.states[axis] == target.states[axis] ? 0 : 1);
    start.order += char(source.order[axis]);
    goal.order += char(target.order[axis]);
  }
  sharing.resize(size_t(axes) * axes * 9);
  for (int a = 0; a < axes; ++a)
    for (size_t i = 0; i < states[a].size(); ++i)
      for (int b = 0; b < axes; ++b)
        for (size_t j = 0; j < states[b].size(); ++j)
          sharing[((a * 3 + i) * axes + b) * 3 + j] =
              detail::sharesFactor(states[a][i], states[b][j]);
  leastVolume = numElements;
  for (int axis = 0; axis < axes; ++axis)
    if (!canSplit(axis))
      leastVolume *= mesh.axes[axis].size;
  goalVolume = replicatedVolume(goal);
}

bool Search::isInnermost(const Node &node, int axis) const {
  for (size_t i = node.order.size(); i-- > 0;) {
    int other = node.order[i];
    if (other == axis)
      return true;
    if (shares(axis, node.states[axis], other, node.states[other]))
      return false;
  }
  return true;
}

Node Search::enter(const Node &node, int axis, int state) const {
  Node result = node;
  result.states[axis] = char(state);
  std::erase(result.order, char(axis));
  result.order += char(axis);
  result.order = detail::canonicalOrder(result.order, [&](int a, int b) {
    return shares(a, result.states[a], b, result.states[b]);
  });
  return result;
}

Layout Search::layoutOf(const Node &node) const {
  Layout layout;
  for (int axis = 0; axis < axes; ++axis)
    layout.states.push_back(stateOf(node, axis));
  layout.order.assign(node.order.begin(), node.order.end());
  return layout;
}

int64_t Search::volume(const Node &node) const {
  int64_t product = numElements;
  for (int axis = 0; axis < axes; ++axis)
    if (!stateOf(node, axis).isSplit())
      product *= mesh.axes[axis].size;
  return product;
}

int64_t Search::replicatedVolume(const Node &node) const {
  int64_t product = leastVolume;
  for (int axis = 0; axis < axes; ++axis)
    if (canSplit(axis) && stateOf(node, axis).isReplicated())
      product *= mesh.axes[axis].size;
  return product;
}

int64_t Search::leastToReduce(const Node &node) const {
  int64_t sum = 0, unscattered = leastVolume;
  for (int axis = 0; axis < axes; ++axis) {
    if (!stateOf(node, axis).isPartial())
      continue;
    int64_t ranks = mesh.axes[axis].size;
    const AxisState &end = stateOf(goal, axis);
    if (end.isSplit())
      unscattered *= ranks;
    else if (end.isReplicated() && !canSplit(axis))
      sum += 2 * (ranks - 1) * (leastVolume / ranks);
  }
  return sum + unscattered - leastVolume;
}

const std::vector<int64_t> &
Search::overlapSums(int dim, int axis, const Node &from, const Node &to) {
  std::string key = {char(dim), char(axis), from.states[axis], to.states[axis]};
  std::vector<int> others;
  for (char other : from.order) {
    const AxisState &state = stateOf(from, other);
    if (other == axis || !state.isSplit() || state.dim != dim)
      continue;
    others.push_back(other);
    key += {other, from.states[other]};
  }
  auto [it, isNew] = knownSums.try_emplace(std::move(key));
  std::vector<int64_t> &sums = it->second;
  if (!isNew)
    return sums;
  std::vector<Shard::Cut> cutsFrom = detail::cutsOf(dim, layoutOf(from));
  std::vector<Shard::Cut> cutsTo = detail::cutsOf(dim, layoutOf(to));
  std::vector<int64_t> at(axes, 0);
  for (; at[axis] < mesh.axes[axis].size; ++at[axis]) {
    sums.push_back(0);
    for (size_t next = 0;;) {
      sums.back() += detail::overlapSize(
          structure[dim],
          detail::factorRanges(structure[dim], cutsFrom, mesh, tables, at),
          detail::factorRanges(structure[dim], cutsTo, mesh, tables, at));
      for (next = 0; next < others.size(); ++next) {
        if (++at[others[next]] < mesh.axes[others[next]].size)
          break;
        at[others[next]] = 0;
      }
      if (next == others.size())
        break;
    }
  }
  return sums;
}

int64_t Search::keptByAllToAll(int axis, const Node &from, const Node &to) {
  int dimFrom = stateOf(from, axis).dim, dimTo = stateOf(to, axis).dim;
  int64_t outside = 1;
  for (int dim = 0; dim < int(structure.size()); ++dim)
    if (dim != dimFrom && dim != dimTo)
      outside *= structure[dim].size;
  for (int other = 0; other < axes; ++other)
    if (!stateOf(from, other).isSplit())
      outside *= mesh.axes[other].size;
  std::vector<int64_t> kept = overlapSums(dimFrom, axis, from, to);
  if (dimFrom != dimTo) {
    const std::vector<int64_t> &sums = overlapSums(dimTo, axis, from, to);
    for (size_t i = 0; i < kept.size(); ++i)
      kept[i] *= sums[i];
  }
  return outside * std::accumulate(kept.begin(), kept.end(), int64_t(0));
}

/// Exact but for one thing: an all-reduce counts 2 (n-1) S per group, which is
/// what its ranks send before each rounds down.
int64_t Search::elementsSent(MoveKind kind, int axis, const Node &from,
                             const Node &to) {
  int64_t ranks = mesh.axes[axis].size;
  switch (kind) {
  case MoveKind::AllReduce:
    return 2 * (ranks - 1) * (volume(from) / ranks);
  case MoveKind::ReduceScatter:
    return (ranks - 1) * (volume(from) / ranks);
  case MoveKind::AllGather:
    return (ranks - 1) * volume(from);
  case MoveKind::AllToAll:
    return volume(from) - keptByAllToAll(axis, from, to);
  case MoveKind::Slice:
  case MoveKind::Zero:
  case MoveKind::Embed:
    return 0;
  }
  return 0;
}

/// Whether the axis must take part in a collective before the goal: it has a
/// partial sum or a split to give up, or entered a stack before an axis that
/// the goal has outside it. Moves of other axes never change a yes to a no.
bool Search::needsCollective(const Node &node, int axis) const {
  int state = node.states[axis], goalState = goal.states[axis];
  const AxisState &now = states[axis][state];
  if (state != goalState)
    return now.isPartial() ||
           (now.isSplit() && !states[axis][goalState].isPartial());
  if (!now.isSplit())
    return false;
  size_t position = node.order.find(char(axis));
  for (char other : goal.order) {
    if (other == char(axis))
      return false;
    if (shares(axis, goalState, other, goal.states[other]) &&
        (node.states[other] != goal.states[other] ||
         node.order.find(other) > position))
      return true;
  }
  return false;
}

/// Both bounds are consistent: no move lowers one by more than it costs. Of
/// elements: with V the volume, W the replicated one and n ranks, a gather
/// costs (n-1) V and adds (n-1) W <= (n-1) V to W; a reduce-scatter costs
/// (n-1)/n V and lowers `leastToReduce` by at most that; an all-reduce costs
/// twice as much and does, at most, both (where it adds to W, V >= n W). Of
/// collectives: each is on one axis.
void Search::bound(Path &path) const {
  path.boundElements =
      path.elements + leastToReduce(path.node) +
      std::max<int64_t>(0, goalVolume - replicatedVolume(path.node));
  path.boundCollectives = path.collectives;
  for (int axis = 0; axis < axes; ++axis)
    path.boundCollectives += needsCollective(path.node, axis);
}

std::vector<Move> Search::movesOf(const std::vector<Step> &steps) const {
  std::vector<Move> moves;
  Layout layout = source;
  for (const Step &step : steps) {
    const AxisState &state = states[step.axis][step.state];
    Layout next = withState(layout, step.axis, state);
    moves.push_back(
        {step.axis, moveKind(layout.states[step.axis], state), layout, next});
    layout = std::move(next);
  }
  return moves;
}

std::vector<Move> Search::run() {
  // Every cycle of moves has a collective in it, so of two equally dear paths
  // to a node none is a prefix of the other, and the order of ties is kept when
  // both are extended: the first path that reaches a node is the one to keep.
  std::priority_queue<Path, std::vector<Path>, std::greater<>> open;
  std::unordered_set<Node, NodeHash> closed;
  Path first{0, 0, {}, 0, 0, start};
  bound(first);
  open.push(std::move(first));
  while (!open.empty()) {
    Path path = open.top();
    open.pop();
    if (!closed.insert(path.node).second)
      continue;
    if (path.node == goal)
      return movesOf(path.steps);
    for (int axis = 0; axis < axes; ++axis) {
      if (!isInnermost(path.node, axis))
        continue;
      for (int state = 0; state < int(states[axis].size()); ++state) {
        if (state == path.node.states[axis])
          continue;
        Node next = enter(path.node, axis, state);
        if (closed.contains(next))
          continue;
        MoveKind kind = moveKind(stateOf(path.node, axis), states[axis][state]);
        if (kind == MoveKind::AllToAll &&
            stateOf(path.node, axis).dim == states[axis][state].dim)
          continue; // within one dim what two blocks share has no expression
        Path longer = path;
        longer.elements += elementsSent(kind, axis, path.node, next);
        longer.collectives += isCollective(kind);
        longer.steps.push_back({uint8_t(axis), kind, uint8_t(state)});
        longer.node = std::move(next);
        bound(longer);
        open.push(std::move(longer));
      }
    }
  }
  assert(false && "a path through replicated always exists");
  return {};
}

std::vector<Move> monarch::reshard(const TensorStructure &structure,
                                   const Layout &from, const Layout &to,
                                   const Mesh &mesh,
                                   const OffsetTables &tables) {
  assert(fits(from, structure, mesh) && fits(to, structure, mesh));
  if (from == to)
    return {};
  return Search(structure, from, to, mesh, tables).run();
}

const std::vector<Move> &ReshardCache::get(const TensorStructure &structure,
                                           const Layout &from,
                                           const Layout &to) {
  auto [it, isNew] = known.try_emplace(std::tuple(from, to, structure));
  if (isNew)
    it->second = reshard(structure, from, to, mesh, tables);
  return it->second;
}
