//===- StageSizes.h - a role's sizes at every rank of its stage -----------===//
//
// Evaluates shards once, for all ranks: a shard at a peer is the same shard at
// another rank, so an expression costs table look-ups only. Sizes saturate at
// `Huge` instead of overflowing; the verifier refuses what reaches it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/program/Program.h"
#include "core/registry/Rule.h"

namespace monarch {

/// Larger than any tensor of a machine, small enough to be added a few times.
inline constexpr int64_t HugeSize = int64_t(1) << 58;

/// Ranks of the stage that differ from `rank` on these axes only, in row-major
/// order of their coordinates, and the rank's own place among them.
struct GroupMembers {
  std::vector<int64_t> ranks;
  int64_t own = 0;
};
GroupMembers membersOf(const Mesh &mesh, int64_t rank,
                       const std::vector<int> &axes);

class StageSizes {
public:
  /// Both must outlive this; every index in the role must be in range.
  StageSizes(const Program &program, const Role &role);

  int64_t ranks() const { return rankCount; }
  const Role &role() const { return theRole; }
  const std::vector<int64_t> &coordinates(int64_t rank) const {
    return coordinatesOf[rank];
  }
  int64_t size(const ShardRef &shard, int64_t rank) const;
  int64_t evaluate(const Expr &expr, int64_t rank) const;
  std::vector<int64_t> evaluate(const std::vector<Expr> &exprs,
                                int64_t rank) const;
  TensorType tensor(int32_t value, int64_t rank) const;
  int64_t elements(int32_t value, int64_t rank) const;
  int64_t bytes(int32_t value, int64_t rank) const;
  /// Operands or results of a call that are tensors.
  std::vector<TensorType> tensors(const std::vector<int32_t> &values,
                                  int64_t rank) const;

  /// Ranks that stand for all: one of those with the same sizes, and with the
  /// most memory among them.
  const std::vector<int64_t> &classes() const { return classRanks; }
  /// The group of each rank along these axes.
  const std::vector<GroupMembers> &groups(const std::vector<int> &axes) const;

private:
  void findClasses();

  const Program &program;
  const Role &theRole;
  int64_t rankCount;
  std::vector<std::vector<int64_t>> coordinatesOf;
  /// By axis: how far apart two ranks are whose coordinates differ by one.
  std::vector<int64_t> strides;
  /// By shard, then rank.
  std::vector<std::vector<int64_t>> shardSizes;
  std::vector<int64_t> classRanks;
  mutable std::map<std::vector<int>, std::vector<GroupMembers>> groupCache;
};

/// a + b and a * b of sizes, at most HugeSize.
int64_t addSizes(int64_t a, int64_t b);
int64_t multiplySizes(int64_t a, int64_t b);

} // namespace monarch
