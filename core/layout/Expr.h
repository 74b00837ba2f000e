//===- Expr.h - integers and index lists that depend on the rank ----------===//
//
// A program is written once per stage; what differs between its ranks are
// sizes, split sizes and index lists. They are expressions over *shards*: one
// dim of a value as one layout cuts it. An expression may name a peer: the same
// shard at another coordinate on one axis.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/layout/Layout.h"

#include <optional>

namespace monarch {

/// One dim as a layout cuts it, apart from the rest of the tensor.
struct Shard {
  DimStructure structure;
  /// Axes that cut it, outermost first, with the factor per section.
  struct Cut {
    int axis;
    std::vector<int> factors;
    auto operator<=>(const Cut &) const = default;
  };
  std::vector<Cut> cuts;
  auto operator<=>(const Shard &) const = default;
};

Shard shardOf(const DimStructure &structure, int dim, const Layout &layout);

/// A shard of the program's table, at this rank or at a peer on one axis.
struct ShardRef {
  int shard = 0;
  /// The coordinate on `peerAxis` is `peer` instead of the rank's own.
  int peerAxis = -1;
  int64_t peer = 0;
  auto operator<=>(const ShardRef &) const = default;
};

/// constant * product of shard sizes, or a sum of such.
struct Expr {
  struct Term {
    int64_t constant = 1;
    std::vector<ShardRef> sizes;
    auto operator<=>(const Term &) const = default;
  };
  std::vector<Term> terms; // empty: 0
  auto operator<=>(const Expr &) const = default;

  static Expr constant(int64_t value);
  static Expr size(ShardRef shard);
};
/// Canonical: like terms added, constants folded, sizes sorted.
Expr operator+(const Expr &a, const Expr &b);
Expr operator*(const Expr &a, const Expr &b);

/// A one-dimensional int64 tensor: element i is the position of the i-th index
/// of concat(of) in concat(in) (the first; -1 when it is not there), or that
/// index itself when `in` is empty.
struct IndexList {
  std::vector<ShardRef> of;
  std::vector<ShardRef> in;
  auto operator<=>(const IndexList &) const = default;
};

/// Evaluates against a program's shard table; caches per rank.
class RankView {
public:
  RankView(const Mesh &mesh, const OffsetTables &tables,
           const std::vector<Shard> &shards, std::vector<int64_t> coordinates);
  int64_t size(const ShardRef &shard) const;
  const std::vector<int64_t> &indices(const ShardRef &shard) const;
  int64_t evaluate(const Expr &expr) const;
  std::vector<int64_t> evaluate(const std::vector<Expr> &exprs) const;
  std::vector<int64_t> evaluate(const IndexList &list) const;
  const std::vector<int64_t> &coordinates() const { return coords; }
  const Mesh &mesh() const { return theMesh; }

private:
  const Mesh &theMesh;
  const OffsetTables &tables;
  const std::vector<Shard> &shards;
  std::vector<int64_t> coords;
  mutable std::map<ShardRef, std::vector<int64_t>> cache;
};

} // namespace monarch
