//===- Expr.cpp - expressions over shards and their values at a rank ------===//

#include "core/layout/Expr.h"

#include "core/layout/Blocks.h"

#include <algorithm>
#include <cassert>
#include <unordered_map>

using namespace monarch;

Shard monarch::shardOf(const DimStructure &structure, int dim,
                       const Layout &layout) {
  return {structure, detail::cutsOf(dim, layout)};
}

//===----------------------------------------------------------------------===//
// Expr
//===----------------------------------------------------------------------===//

Expr Expr::constant(int64_t value) {
  if (value == 0)
    return {};
  return {{{value, {}}}};
}

Expr Expr::size(ShardRef shard) { return {{{1, {shard}}}}; }

/// From the sum of terms by their sorted sizes.
static Expr fromTerms(std::map<std::vector<ShardRef>, int64_t> &&constants) {
  Expr result;
  for (auto &[sizes, constant] : constants)
    if (constant != 0)
      result.terms.push_back({constant, sizes});
  return result;
}

Expr monarch::operator+(const Expr &a, const Expr &b) {
  // Nearly all expressions have one term.
  if (a.terms.empty() && b.terms.size() == 1)
    return b;
  if (b.terms.empty() && a.terms.size() == 1)
    return a;
  std::map<std::vector<ShardRef>, int64_t> constants;
  for (const Expr *expr : {&a, &b})
    for (const Expr::Term &term : expr->terms)
      constants[term.sizes] += term.constant;
  return fromTerms(std::move(constants));
}

static Expr::Term product(const Expr::Term &left, const Expr::Term &right) {
  Expr::Term result{left.constant * right.constant, {}};
  result.sizes.reserve(left.sizes.size() + right.sizes.size());
  std::merge(left.sizes.begin(), left.sizes.end(), right.sizes.begin(),
             right.sizes.end(), std::back_inserter(result.sizes));
  return result;
}

Expr monarch::operator*(const Expr &a, const Expr &b) {
  if (a.terms.size() == 1 && b.terms.size() == 1) {
    Expr result;
    Expr::Term term = product(a.terms[0], b.terms[0]);
    if (term.constant != 0)
      result.terms.push_back(std::move(term));
    return result;
  }
  std::map<std::vector<ShardRef>, int64_t> constants;
  for (const Expr::Term &left : a.terms)
    for (const Expr::Term &right : b.terms) {
      Expr::Term term = product(left, right);
      constants[std::move(term.sizes)] += term.constant;
    }
  return fromTerms(std::move(constants));
}

//===----------------------------------------------------------------------===//
// RankView
//===----------------------------------------------------------------------===//

RankView::RankView(const Mesh &mesh, const OffsetTables &tables,
                   const std::vector<Shard> &shards,
                   std::vector<int64_t> coordinates)
    : theMesh(mesh), tables(tables), shards(shards),
      coords(std::move(coordinates)) {
  assert(coords.size() == mesh.axes.size());
}

/// The coordinates at which a reference looks.
static std::vector<int64_t> coordinatesOf(const ShardRef &shard,
                                          std::vector<int64_t> own) {
  if (shard.peerAxis >= 0)
    own[shard.peerAxis] = shard.peer;
  return own;
}

int64_t RankView::size(const ShardRef &ref) const {
  const Shard &shard = shards[ref.shard];
  return detail::blockSize(shard.structure,
                           detail::factorRanges(shard.structure, shard.cuts,
                                                theMesh, tables,
                                                coordinatesOf(ref, coords)));
}

const std::vector<int64_t> &RankView::indices(const ShardRef &ref) const {
  auto [it, isNew] = cache.try_emplace(ref);
  if (isNew) {
    const Shard &shard = shards[ref.shard];
    it->second = detail::blockIndices(
        shard.structure,
        detail::factorRanges(shard.structure, shard.cuts, theMesh, tables,
                             coordinatesOf(ref, coords)));
  }
  return it->second;
}

int64_t RankView::evaluate(const Expr &expr) const {
  int64_t sum = 0;
  for (const Expr::Term &term : expr.terms) {
    int64_t product = term.constant;
    for (const ShardRef &shard : term.sizes)
      product *= size(shard);
    sum += product;
  }
  return sum;
}

std::vector<int64_t> RankView::evaluate(const std::vector<Expr> &exprs) const {
  std::vector<int64_t> values;
  for (const Expr &expr : exprs)
    values.push_back(evaluate(expr));
  return values;
}

std::vector<int64_t> RankView::evaluate(const IndexList &list) const {
  std::vector<int64_t> result;
  for (const ShardRef &shard : list.of) {
    const std::vector<int64_t> &part = indices(shard);
    result.insert(result.end(), part.begin(), part.end());
  }
  if (list.in.empty())
    return result;
  std::unordered_map<int64_t, int64_t> positions;
  int64_t next = 0;
  for (const ShardRef &shard : list.in)
    for (int64_t index : indices(shard))
      positions.try_emplace(index, next++);
  for (int64_t &index : result) {
    auto it = positions.find(index);
    index = it == positions.end() ? -1 : it->second;
  }
  return result;
}
