//===- CoreTypes.h - structs of core as attribute parameters --------------===//
//
// Attributes of dist hold structs of `core`. MLIR wants to hash and compare
// them; two more are made here of what core keeps as fields of others.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/program/Program.h"

#include "llvm/ADT/Hashing.h"

namespace monarch {

template <typename T> llvm::hash_code hashRange(const std::vector<T> &range) {
  return llvm::hash_combine_range(range.begin(), range.end());
}

inline llvm::hash_code hash_value(const MeshAxis &axis) {
  return llvm::hash_combine(axis.name, axis.size, axis.role);
}
inline llvm::hash_code hash_value(const Mesh &mesh) {
  return hashRange(mesh.axes);
}
inline llvm::hash_code hash_value(const AxisState &state) {
  return llvm::hash_combine(state.kind, state.dim, hashRange(state.factors));
}
inline llvm::hash_code hash_value(const Layout &layout) {
  return llvm::hash_combine(hashRange(layout.states), hashRange(layout.order));
}
inline llvm::hash_code hash_value(const ShardRef &shard) {
  return llvm::hash_combine(shard.shard, shard.peerAxis, shard.peer);
}
inline llvm::hash_code hash_value(const Expr::Term &term) {
  return llvm::hash_combine(term.constant, hashRange(term.sizes));
}
inline llvm::hash_code hash_value(const Expr &expr) {
  return hashRange(expr.terms);
}
inline llvm::hash_code hash_value(const std::vector<Expr> &exprs) {
  return hashRange(exprs);
}
inline llvm::hash_code hash_value(const Section &section) {
  return llvm::hash_combine(section.begin, section.end,
                            hashRange(section.factors));
}
inline llvm::hash_code hash_value(const DimStructure &dim) {
  return llvm::hash_combine(dim.size, hashRange(dim.sections));
}
inline llvm::hash_code hash_value(const Shard::Cut &cut) {
  return llvm::hash_combine(cut.axis, hashRange(cut.factors));
}
inline llvm::hash_code hash_value(const Shard &shard) {
  return llvm::hash_combine(shard.structure, hashRange(shard.cuts));
}
inline llvm::hash_code hash_value(const Slot &slot) {
  return llvm::hash_combine(slot.segment, slot.unit);
}

namespace dist {

/// One exception of OffsetTables.
struct OffsetTable {
  int64_t extent = 0;
  int64_t parts = 0;
  std::vector<int64_t> offsets;
  bool operator==(const OffsetTable &) const = default;
};
inline llvm::hash_code hash_value(const OffsetTable &table) {
  return llvm::hash_combine(table.extent, table.parts,
                            hashRange(table.offsets));
}

/// What the role's table says of a value beside its type.
struct ValueInfo {
  int32_t number = 0;
  Lifetime lifetime = Lifetime::Local;
  int32_t aliasOf = None;
  std::string name;
  bool operator==(const ValueInfo &) const = default;
};
inline llvm::hash_code hash_value(const ValueInfo &info) {
  return llvm::hash_combine(info.number, info.lifetime, info.aliasOf,
                            info.name);
}

} // namespace dist

} // namespace monarch
