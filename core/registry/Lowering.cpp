//===- Lowering.cpp - an op's operands and results on one rank ------------===//
//
// Shapes and index lists come from structure and layout alone. Sizes of
// literals are the local sizes of results; counts and offsets stay global.
//
//===----------------------------------------------------------------------===//
#include "core/registry/Lowering.h"

#include <algorithm>
#include <cassert>

namespace monarch {

namespace {

/// The sections of a shard in [begin, end), as a dim of their own.
Shard sectionsOf(const Shard &shard, int64_t begin, int64_t end) {
  Shard part;
  part.structure.size = end - begin;
  size_t first = 0, last = 0;
  const std::vector<Section> &sections = shard.structure.sections;
  while (first < sections.size() && sections[first].begin < begin)
    ++first;
  last = first;
  while (last < sections.size() && sections[last].end <= end) {
    Section section = sections[last++];
    section.begin -= begin;
    section.end -= begin;
    part.structure.sections.push_back(std::move(section));
  }
  assert(begin == end || (first < last && sections[first].begin == begin &&
                          sections[last - 1].end == end));
  for (const Shard::Cut &cut : shard.cuts) {
    Shard::Cut own{cut.axis,
                   {cut.factors.begin() + first, cut.factors.begin() + last}};
    if (std::any_of(own.factors.begin(), own.factors.end(),
                    [](int factor) { return factor >= 0; }))
      part.cuts.push_back(std::move(own));
  }
  return part;
}

struct ArgConversion {
  Lowering &lowering;

  template <typename T> CallArg operator()(const T &arg) { return arg; }
  CallArg operator()(int64_t arg) { return Expr::constant(arg); }
  CallArg operator()(const std::vector<int64_t> &arg) {
    std::vector<Expr> sizes;
    for (int64_t size : arg)
      sizes.push_back(Expr::constant(size));
    return sizes;
  }
  CallArg operator()(const ResultSizes &arg) {
    return lowering.resultShape(arg.result);
  }
  CallArg operator()(const ResultSize &arg) {
    return lowering.resultShape(arg.result)[arg.dim];
  }
  CallArg operator()(const ResultsSizes &arg) {
    std::vector<Expr> sizes;
    for (size_t k = 0; k < lowering.op.results.size(); ++k)
      sizes.push_back(lowering.resultShape(static_cast<int>(k))[arg.dim]);
    return sizes;
  }
};

} // namespace

std::vector<int> Lowering::axesOf(const std::vector<std::string> &names) const {
  std::vector<int> axes;
  for (size_t axis = 0; axis < labels.size(); ++axis)
    if (std::any_of(names.begin(), names.end(), [&](const std::string &name) {
          return std::count(labels[axis].begin(), labels[axis].end(), name) > 0;
        }))
      axes.push_back(static_cast<int>(axis));
  return axes;
}

std::vector<int>
Lowering::axesOf(std::initializer_list<std::string_view> names) const {
  return axesOf(std::vector<std::string>(names.begin(), names.end()));
}

bool Lowering::splits(std::string_view label) const {
  return !axesOf({label}).empty();
}

ShardRef Lowering::operandShard(int operand, int dim) {
  return writer.shard(
      shardOf((*operandStructure[operand])[dim], dim, operandLayout[operand]));
}

ShardRef Lowering::resultShard(int result, int dim) {
  return writer.shard(
      shardOf((*resultStructure[result])[dim], dim, resultLayout[result]));
}

Local Lowering::operandIndices(int operand, int dim) {
  return writer.index({{operandShard(operand, dim)}, {}});
}

Local Lowering::resultIndices(int result, int dim) {
  return writer.index({{resultShard(result, dim)}, {}});
}

std::vector<Expr> Lowering::operandShape(int operand) {
  std::vector<Expr> shape;
  for (size_t dim = 0; dim < operandStructure[operand]->size(); ++dim)
    shape.push_back(
        writer.fold(Expr::size(operandShard(operand, static_cast<int>(dim)))));
  return shape;
}

std::vector<Expr> Lowering::resultShape(int result) {
  std::vector<Expr> shape;
  for (size_t dim = 0; dim < resultStructure[result]->size(); ++dim)
    shape.push_back(
        writer.fold(Expr::size(resultShard(result, static_cast<int>(dim)))));
  return shape;
}

int64_t Lowering::globalSize(ValueId value, int dim) const {
  return graph.value(value).shape[dim];
}

DType Lowering::resultType(int result) const {
  return graph.value(op.results[result]).type;
}

Expr Lowering::operandSectionSize(int operand, int dim, int64_t begin,
                                  int64_t end) {
  Shard shard =
      shardOf((*operandStructure[operand])[dim], dim, operandLayout[operand]);
  return writer.fold(Expr::size(writer.shard(sectionsOf(shard, begin, end))));
}

Expr Lowering::resultSectionSize(int result, int dim, int64_t begin,
                                 int64_t end) {
  Shard shard =
      shardOf((*resultStructure[result])[dim], dim, resultLayout[result]);
  return writer.fold(Expr::size(writer.shard(sectionsOf(shard, begin, end))));
}

bool Lowering::mayBeEmpty(const ShardRef &shard) const {
  if (!tables)
    return true;
  for (int64_t rank = 0; rank < mesh.size(); ++rank) {
    RankView view(mesh, *tables, writer.role.shards, mesh.coordinates(rank));
    if (view.size(shard) == 0)
      return true;
  }
  return false;
}

CallArg Lowering::localArg(size_t argument) {
  return std::visit(ArgConversion{*this}, op.args[argument]);
}

void Lowering::callItself() {
  std::vector<CallArg> args;
  for (size_t k = 0; k < op.args.size(); ++k)
    args.push_back(localArg(k));
  callAs(op.name, operands, std::move(args));
}

void Lowering::callAs(std::string name, std::vector<Local> operands,
                      std::vector<CallArg> args) {
  std::vector<ProgramValue> values;
  std::vector<size_t> places;
  for (size_t k = 0; k < op.results.size(); ++k) {
    if (op.results[k] == None)
      continue;
    ProgramValue value;
    value.type = resultType(static_cast<int>(k));
    value.shape = resultShape(static_cast<int>(k));
    values.push_back(std::move(value));
    places.push_back(k);
  }
  std::vector<Local> made = writer.call(std::move(name), std::move(operands),
                                        std::move(args), std::move(values));
  // The call returns as many results as the op has: absent ones are dropped.
  if (places.size() != op.results.size()) {
    std::vector<int32_t> all(op.results.size(), None);
    for (size_t k = 0; k < places.size(); ++k)
      all[places[k]] = made[k].value;
    writer.target->back().results = std::move(all);
  }
  results.assign(op.results.size(), Local());
  for (size_t k = 0; k < places.size(); ++k)
    results[places[k]] = made[k];
}

void lower(const OpRule &rule, Lowering &lowering) {
  if (rule.lower)
    rule.lower(lowering);
  else
    lowering.callItself();
}

} // namespace monarch
