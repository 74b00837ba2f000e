//===- Ranks.cpp - a lockstep interpreter of local instructions -----------===//

#include "test/strategies/Ranks.h"

#include "test/strategies/Calls.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/maximum.h>

#include <cmath>
#include <stdexcept>

namespace monarch::test {

namespace {

/// Ranks in groups that differ on these axes only.
std::map<std::vector<int64_t>, std::vector<int64_t>>
groupsOf(const Mesh &mesh, const std::vector<int> &axes) {
  std::map<std::vector<int64_t>, std::vector<int64_t>> groups;
  for (int64_t rank = 0; rank < mesh.size(); ++rank) {
    std::vector<int64_t> key = mesh.coordinates(rank);
    for (int axis : axes)
      key[axis] = 0;
    groups[key].push_back(rank);
  }
  return groups;
}

std::vector<int> partialAxes(const Layout &layout) {
  std::vector<int> axes;
  for (size_t axis = 0; axis < layout.states.size(); ++axis)
    if (layout.states[axis].isPartial())
      axes.push_back(static_cast<int>(axis));
  return axes;
}

at::Tensor indexTensor(const std::vector<int64_t> &indices) {
  at::Tensor tensor = at::empty({static_cast<int64_t>(indices.size())},
                                at::TensorOptions(at::kLong));
  std::copy(indices.begin(), indices.end(), tensor.data_ptr<int64_t>());
  return tensor;
}

at::Tensor blockOf(at::Tensor tensor, const TensorStructure &structure,
                   const Layout &layout, const Mesh &mesh,
                   const OffsetTables &tables, int64_t rank) {
  std::vector<int64_t> coordinates = mesh.coordinates(rank);
  for (size_t dim = 0; dim < structure.size(); ++dim)
    tensor = tensor.index_select(
        dim, indexTensor(localIndices(structure[dim], static_cast<int>(dim),
                                      layout, mesh, tables, coordinates)));
  return tensor.dim() == 0 ? tensor.clone() : tensor;
}

[[noreturn]] void fail(const Instruction &instruction, const std::string &why) {
  throw std::logic_error(instruction.name + ": " + why);
}

} // namespace

at::Tensor randomTensor(const std::vector<int64_t> &shape,
                        std::mt19937_64 &random) {
  at::Tensor tensor = at::empty(shape, at::TensorOptions(at::kDouble));
  std::normal_distribution<double> normal;
  double *data = tensor.data_ptr<double>();
  for (int64_t k = 0; k < tensor.numel(); ++k)
    data[k] = normal(random);
  return tensor;
}

Ranks::Ranks(const Mesh &mesh, const OffsetTables &tables, const Role &role)
    : mesh(mesh), tables(tables), role(role),
      tensors(mesh.size(), std::vector<at::Tensor>(role.values.size())) {
  for (int64_t rank = 0; rank < mesh.size(); ++rank) {
    views.emplace_back(mesh, tables, role.shards, mesh.coordinates(rank));
    for (const ProgramIndex &index : role.indices)
      tensors[rank][index.value] =
          indexTensor(views[rank].evaluate(index.list));
  }
}

void Ranks::run(const std::vector<Instruction> &instructions) {
  for (const Instruction &instruction : instructions) {
    if (instruction.kind == InstructionKind::AllReduce) {
      allReduce(instruction);
      continue;
    }
    if (instruction.kind != InstructionKind::Call)
      fail(instruction, "not an instruction of a local body");
    for (int64_t rank = 0; rank < mesh.size(); ++rank)
      runCall(instruction, rank);
  }
}

void Ranks::runCall(const Instruction &instruction, int64_t rank) {
  std::vector<at::Tensor> operands;
  for (int32_t operand : instruction.operands)
    operands.push_back(tensors[rank][operand]);
  std::vector<at::Tensor> results =
      callInstruction(instruction, operands, views[rank]);
  if (results.size() != instruction.results.size())
    fail(instruction, "another number of results");
  for (size_t k = 0; k < results.size(); ++k)
    if (instruction.results[k] != None)
      store(instruction, rank, instruction.results[k], results[k]);
}

void Ranks::store(const Instruction &instruction, int64_t rank, int32_t value,
                  at::Tensor tensor) {
  const ProgramValue &said = role.values[value];
  if (tensor.sizes() != at::IntArrayRef(views[rank].evaluate(said.shape)))
    fail(instruction, "another shape than the program says");
  if (tensor.scalar_type() != scalarType(said.type))
    fail(instruction, "another type than the program says");
  if (said.aliasOf != None) {
    if (!tensor.is_alias_of(tensors[rank][said.aliasOf]))
      fail(instruction, "a view with storage of its own");
  } else {
    for (int32_t operand : instruction.operands)
      if (tensor.numel() > 0 && tensor.is_alias_of(tensors[rank][operand]))
        fail(instruction, "shares storage, which the program does not say");
    tensor = tensor.contiguous();
  }
  tensors[rank][value] = std::move(tensor);
}

void Ranks::allReduce(const Instruction &instruction) {
  int32_t value = instruction.operands[0];
  for (const auto &[key, group] : groupsOf(mesh, instruction.axes)) {
    at::Tensor total;
    for (int64_t rank : group) {
      const at::Tensor &own = tensors[rank][value];
      if (!own.is_contiguous())
        fail(instruction, "all-reduce of what is not contiguous");
      if (!total.defined())
        total = own.clone();
      else if (own.sizes() != total.sizes())
        fail(instruction, "all-reduce of unequal shapes");
      else
        total =
            instruction.name == "max" ? at::maximum(total, own) : total + own;
    }
    for (int64_t rank : group)
      tensors[rank][value].copy_(total);
  }
}

std::vector<at::Tensor> cut(const at::Tensor &whole,
                            const TensorStructure &structure,
                            const Layout &layout, const Mesh &mesh,
                            const OffsetTables &tables,
                            std::mt19937_64 &random) {
  std::vector<int> partial = partialAxes(layout);
  // Summands by the coordinates on the partial axes: the last one completes.
  std::map<std::vector<int64_t>, at::Tensor> summands;
  for (int64_t rank = 0; rank < mesh.size(); ++rank) {
    std::vector<int64_t> coordinates = mesh.coordinates(rank), key;
    for (int axis : partial)
      key.push_back(coordinates[axis]);
    summands[key];
  }
  at::Tensor rest = whole;
  for (auto &[key, summand] : summands) {
    if (key == summands.rbegin()->first) {
      summand = rest;
      break;
    }
    summand = randomTensor(whole.sizes().vec(), random).to(whole.scalar_type());
    rest = rest - summand;
  }
  std::vector<at::Tensor> parts;
  for (int64_t rank = 0; rank < mesh.size(); ++rank) {
    std::vector<int64_t> coordinates = mesh.coordinates(rank), key;
    for (int axis : partial)
      key.push_back(coordinates[axis]);
    parts.push_back(
        blockOf(summands.at(key), structure, layout, mesh, tables, rank));
  }
  return parts;
}

double largestError(const std::vector<at::Tensor> &parts,
                    const at::Tensor &whole, const TensorStructure &structure,
                    const Layout &layout, const Mesh &mesh,
                    const OffsetTables &tables) {
  constexpr double Unequal = std::numeric_limits<double>::infinity();
  double largest = 0;
  for (const auto &[key, group] : groupsOf(mesh, partialAxes(layout))) {
    at::Tensor sum;
    for (int64_t rank : group)
      sum = sum.defined() ? sum + parts[rank] : parts[rank];
    at::Tensor expected =
        blockOf(whole, structure, layout, mesh, tables, group[0]);
    if (sum.sizes() != expected.sizes())
      return Unequal;
    if (!whole.is_floating_point() && !whole.is_complex()) {
      if (!at::equal(sum, expected))
        return Unequal;
      continue;
    }
    if (sum.numel() == 0)
      continue;
    // Equal infinities and equal absences are equal.
    at::Tensor same =
        sum.eq(expected).logical_or(sum.isnan().logical_and(expected.isnan()));
    at::Tensor error = (sum - expected).abs().masked_fill(same, 0.0);
    at::Tensor finite = whole.masked_fill(whole.isfinite().logical_not(), 0.0);
    double scale = std::max(1.0, finite.abs().max().item<double>());
    double worst = error.max().item<double>() / scale;
    if (std::isnan(worst))
      return Unequal;
    largest = std::max(largest, worst);
  }
  return largest;
}

} // namespace monarch::test
