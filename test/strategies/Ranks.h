//===- Ranks.h - local instructions of all ranks, in lockstep -------------===//
//
// Cuts tensors by layouts, runs one list of instructions on every rank of a
// mesh in this process, and puts results together. What the program says of
// every value (shape, type, whose storage) is checked against the tensors.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/program/Program.h"
#include "core/registry/Lowering.h"

#include <ATen/core/Tensor.h>

#include <random>

namespace monarch::test {

struct Ranks {
  const Mesh &mesh;
  const OffsetTables &tables;
  const Role &role;
  /// By rank, then value.
  std::vector<std::vector<at::Tensor>> tensors;

  Ranks(const Mesh &mesh, const OffsetTables &tables, const Role &role);
  void run(const std::vector<Instruction> &instructions);

private:
  void runCall(const Instruction &instruction, int64_t rank);
  void allReduce(const Instruction &instruction);
  void store(const Instruction &instruction, int64_t rank, int32_t value,
             at::Tensor tensor);

  std::vector<RankView> views;
};

/// Every rank's part. Partial states: random summands of the tensor.
std::vector<at::Tensor> cut(const at::Tensor &whole,
                            const TensorStructure &structure,
                            const Layout &layout, const Mesh &mesh,
                            const OffsetTables &tables,
                            std::mt19937_64 &random);
/// The largest error, over ranks, of parts against what they are parts of,
/// relative to its largest entry (at least 1). Parts are summed over the axes
/// on which they are partial; integers must be equal.
double largestError(const std::vector<at::Tensor> &parts,
                    const at::Tensor &whole, const TensorStructure &structure,
                    const Layout &layout, const Mesh &mesh,
                    const OffsetTables &tables);

at::Tensor randomTensor(const std::vector<int64_t> &shape,
                        std::mt19937_64 &random);

} // namespace monarch::test
