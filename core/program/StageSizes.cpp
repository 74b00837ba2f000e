//===- StageSizes.cpp -----------------------------------------------------===//
//
// See StageSizes.h.
//
//===----------------------------------------------------------------------===//
#include "core/program/StageSizes.h"

#include <algorithm>
#include <set>

namespace monarch {

int64_t addSizes(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum))
    return HugeSize;
  return std::min(sum, HugeSize);
}

int64_t multiplySizes(int64_t a, int64_t b) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product))
    return HugeSize;
  return std::min(product, HugeSize);
}

GroupMembers membersOf(const Mesh &mesh, int64_t rank,
                       const std::vector<int> &axes) {
  std::vector<int64_t> coordinates = mesh.coordinates(rank);
  int64_t count = 1;
  for (int axis : axes)
    count *= mesh.axes[axis].size;
  GroupMembers group;
  for (int64_t member = 0; member < count; ++member) {
    int64_t rest = member;
    for (size_t i = axes.size(); i-- > 0;) {
      coordinates[axes[i]] = rest % mesh.axes[axes[i]].size;
      rest /= mesh.axes[axes[i]].size;
    }
    group.ranks.push_back(mesh.rankInStage(coordinates));
    if (group.ranks.back() == rank)
      group.own = member;
  }
  return group;
}

StageSizes::StageSizes(const Program &program, const Role &role)
    : program(program), theRole(role), rankCount(program.mesh.size()) {
  const auto &axes = program.mesh.axes;
  strides.assign(axes.size(), 1);
  for (size_t axis = axes.size(); axis-- > 1;)
    strides[axis - 1] = strides[axis] * axes[axis].size;
  std::vector<RankView> views;
  for (int64_t rank = 0; rank < rankCount; ++rank) {
    coordinatesOf.push_back(program.mesh.coordinates(rank));
    views.emplace_back(program.mesh, program.tables, role.shards,
                       coordinatesOf.back());
  }
  for (size_t shard = 0; shard < role.shards.size(); ++shard) {
    std::vector<int64_t> sizes;
    for (int64_t rank = 0; rank < rankCount; ++rank) {
      // The first rank with these coordinates on the axes that cut the shard.
      int64_t first = 0;
      for (const Shard::Cut &cut : role.shards[shard].cuts)
        first += coordinatesOf[rank][cut.axis] * strides[cut.axis];
      sizes.push_back(first < rank
                          ? sizes[first]
                          : views[rank].size({static_cast<int>(shard)}));
    }
    shardSizes.push_back(std::move(sizes));
  }
  findClasses();
}

int64_t StageSizes::size(const ShardRef &shard, int64_t rank) const {
  if (shard.peerAxis >= 0)
    rank += (shard.peer - coordinatesOf[rank][shard.peerAxis]) *
            strides[shard.peerAxis];
  return shardSizes[shard.shard][rank];
}

int64_t StageSizes::evaluate(const Expr &expr, int64_t rank) const {
  int64_t sum = 0;
  for (const Expr::Term &term : expr.terms) {
    int64_t product = term.constant;
    for (const ShardRef &shard : term.sizes)
      product = multiplySizes(product, size(shard, rank));
    sum = addSizes(sum, product);
  }
  return sum;
}

std::vector<int64_t> StageSizes::evaluate(const std::vector<Expr> &exprs,
                                          int64_t rank) const {
  std::vector<int64_t> values;
  values.reserve(exprs.size());
  for (const Expr &expr : exprs)
    values.push_back(evaluate(expr, rank));
  return values;
}

TensorType StageSizes::tensor(int32_t value, int64_t rank) const {
  const ProgramValue &declared = theRole.values[value];
  return {declared.type, evaluate(declared.shape, rank)};
}

int64_t StageSizes::elements(int32_t value, int64_t rank) const {
  int64_t count = 1;
  for (const Expr &size : theRole.values[value].shape)
    count = multiplySizes(count, evaluate(size, rank));
  return count;
}

int64_t StageSizes::bytes(int32_t value, int64_t rank) const {
  return multiplySizes(elements(value, rank),
                       byteWidth(theRole.values[value].type));
}

std::vector<TensorType> StageSizes::tensors(const std::vector<int32_t> &values,
                                            int64_t rank) const {
  std::vector<TensorType> list;
  for (int32_t value : values)
    if (value != None)
      list.push_back(tensor(value, rank));
  return list;
}

const std::vector<GroupMembers> &
StageSizes::groups(const std::vector<int> &axes) const {
  auto [found, isNew] = groupCache.try_emplace(axes);
  if (isNew)
    for (int64_t rank = 0; rank < rankCount; ++rank)
      found->second.push_back(membersOf(program.mesh, rank, axes));
  return found->second;
}

void StageSizes::findClasses() {
  // All that shapes are made of. A Zero makes a tensor off coordinate 0: a rank
  // where more of them do holds at least as much at any time.
  std::set<ShardRef> parts;
  for (const ProgramValue &value : theRole.values)
    for (const Expr &size : value.shape)
      for (const Expr::Term &term : size.terms)
        parts.insert(term.sizes.begin(), term.sizes.end());
  std::set<int> zeroAxes;
  for (const Segment &segment : theRole.segments)
    for (const Instruction &instruction : segment.instructions)
      if (instruction.kind == InstructionKind::Zero)
        zeroAxes.insert(instruction.axes[0]);
  struct Member {
    int64_t rank;
    std::set<int> zeroes;
  };
  std::map<std::vector<int64_t>, std::vector<Member>> bySizes;
  for (int64_t rank = 0; rank < rankCount; ++rank) {
    std::vector<int64_t> key;
    for (const ShardRef &part : parts)
      key.push_back(size(part, rank));
    Member added{rank, {}};
    for (int axis : zeroAxes)
      if (coordinatesOf[rank][axis] != 0)
        added.zeroes.insert(axis);
    auto covers = [](const Member &a, const Member &b) {
      return std::includes(a.zeroes.begin(), a.zeroes.end(), b.zeroes.begin(),
                           b.zeroes.end());
    };
    std::vector<Member> &members = bySizes[std::move(key)];
    if (std::any_of(members.begin(), members.end(), [&](const Member &member) {
          return covers(member, added);
        }))
      continue;
    std::erase_if(members,
                  [&](const Member &member) { return covers(added, member); });
    members.push_back(std::move(added));
  }
  for (const auto &[key, members] : bySizes)
    for (const Member &member : members)
      classRanks.push_back(member.rank);
  std::sort(classRanks.begin(), classRanks.end());
}

} // namespace monarch
