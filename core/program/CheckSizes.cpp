//===- CheckSizes.cpp - sizes make sense at every rank --------------------===//
//
// No size is negative or past what a machine holds, and each leaf has the shape
// that its layout gives it: the runtime cuts files and batches by the layout.
//
//===----------------------------------------------------------------------===//
#include "core/program/Checks.h"

#include <algorithm>
#include <fmt/format.h>

namespace monarch {

namespace {

class SizeChecker {
public:
  SizeChecker(const Program &program, const StageSizes &sizes,
              Findings &findings)
      : program(program), sizes(sizes), role(sizes.role()), findings(findings) {
  }

  void run() {
    // Ranks of a class have the same sizes.
    for (int64_t rank : sizes.classes())
      for (int32_t id = 0; id < static_cast<int32_t>(role.values.size()); ++id)
        checkValue(id, rank);
    for (const ProgramParameter &parameter : role.parameters)
      checkLeaf(parameter.value, parameter.structure, parameter.layout);
    for (const ProgramBuffer &buffer : role.buffers)
      checkLeaf(buffer.value, buffer.structure,
                Layout::replicated(program.mesh.axes.size()));
    for (const ProgramInput &input : role.inputs)
      checkLeaf(input.value, input.structure, input.layout);
    for (const ProgramIndex &index : role.indices)
      checkIndex(index);
  }

private:
  void checkValue(int32_t id, int64_t rank) {
    std::vector<int64_t> shape = sizes.tensor(id, rank).shape;
    bool negative = std::any_of(shape.begin(), shape.end(),
                                [](int64_t size) { return size < 0; });
    if (negative || sizes.bytes(id, rank) >= HugeSize)
      findings.add("MP2112",
                   fmt::format("value {} has shape [{}] at rank {}",
                               nameOf(role, id), fmt::join(shape, ", "), rank),
                   fmt::format("stage {}", role.stage));
  }

  void checkLeaf(int32_t id, const TensorStructure &structure,
                 const Layout &layout) {
    const ProgramValue &value = role.values[id];
    for (size_t dim = 0; dim < structure.size(); ++dim) {
      Shard shard = shardOf(structure[dim], static_cast<int>(dim), layout);
      const Expr &size = value.shape[dim];
      if (shard.cuts.empty() ? size == Expr::constant(structure[dim].size)
                             : isSizeOf(size, shard))
        continue;
      for (int64_t rank = 0; rank < sizes.ranks(); ++rank)
        if (int64_t expected = RankView(program.mesh, program.tables, {shard},
                                        sizes.coordinates(rank))
                                   .size({});
            sizes.evaluate(size, rank) != expected) {
          findings.add("MP2113",
                       fmt::format("{} has size {} in dim {} at rank {}, its "
                                   "layout gives {}",
                                   nameOf(role, id), sizes.evaluate(size, rank),
                                   dim, rank, expected),
                       fmt::format("stage {}", role.stage));
          return;
        }
    }
  }

  bool isSizeOf(const Expr &size, const Shard &shard) const {
    return size.terms.size() == 1 && size.terms[0].constant == 1 &&
           size.terms[0].sizes.size() == 1 &&
           size.terms[0].sizes[0].peerAxis < 0 &&
           role.shards[size.terms[0].sizes[0].shard] == shard;
  }

  void checkIndex(const ProgramIndex &index) {
    for (int64_t rank = 0; rank < sizes.ranks(); ++rank) {
      int64_t length = 0;
      for (const ShardRef &shard : index.list.of)
        length = addSizes(length, sizes.size(shard, rank));
      if (length == sizes.elements(index.value, rank))
        continue;
      findings.add("MP2113",
                   fmt::format("index list {} has {} elements at rank {}, {} "
                               "are declared",
                               nameOf(role, index.value), length, rank,
                               sizes.elements(index.value, rank)),
                   fmt::format("stage {}", role.stage));
      return;
    }
  }

  const Program &program;
  const StageSizes &sizes;
  const Role &role;
  Findings &findings;
};

} // namespace

void checkSizes(const Program &program, const StageSizes &sizes,
                Findings &findings) {
  SizeChecker(program, sizes, findings).run();
}

} // namespace monarch
