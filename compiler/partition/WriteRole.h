//===- WriteRole.h - one role as a dist op --------------------------------===//
#pragma once

#include "compiler/partition/Uses.h"
#include "dialects/dist/LocalTypes.h"

#include "mlir/IR/Builders.h"

namespace monarch::parts {

/// Writes a `dist.role` at the builder's place.
void writeRole(mlir::OpBuilder &builder, const Role &role,
               const RolePieces &pieces, const Graph &graph);

/// Writes instructions at the builder's place; `locals` gives the SSA value of
/// each of the role's values, and takes those of results.
class InstructionWriter {
public:
  InstructionWriter(mlir::OpBuilder &builder, const Role &role,
                    const Graph &graph);

  void write(const Instruction &instruction);
  mlir::RankedTensorType typeOf(int32_t value) const { return types[value]; }
  dist::ValueAttr infoOf(int32_t value) const;
  llvm::SmallVector<mlir::Value>
  localsOf(const std::vector<int32_t> &values) const;
  llvm::SmallVector<mlir::Type>
  typesOf(const std::vector<int32_t> &values) const;

  std::vector<mlir::Value> locals;

private:
  /// The place of the op that it belongs to: what errors at run time name.
  mlir::Location placeOf(const Instruction &instruction) const;
  void writeCall(const Instruction &instruction);

  mlir::OpBuilder &builder;
  const Role &role;
  const Graph &graph;
  std::vector<mlir::RankedTensorType> types;
};

} // namespace monarch::parts
