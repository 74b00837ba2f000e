//===- RoleWriter.cpp - instructions and values of a role -----------------===//
//
// Results of view calls are marked as aliases of their first operand. Whether a
// view's operand is contiguous must be decided for all ranks at once, so it is
// decided from the calls alone, never from sizes that depend on the rank.
//
//===----------------------------------------------------------------------===//
#include "core/registry/Lowering.h"

#include <algorithm>
#include <array>
#include <cassert>

namespace monarch {

namespace {

/// Views in the narrow sense: any shape, contiguous operand.
bool isReshape(const std::string &name) {
  return name == "aten::view" || name == "aten::_unsafe_view" ||
         name == "aten::reshape";
}

constexpr std::array Views = {"aten::view",           "aten::_unsafe_view",
                              "aten::reshape",        "aten::t",
                              "aten::transpose.int",  "aten::permute",
                              "aten::expand",         "aten::unsqueeze",
                              "aten::squeeze",        "aten::squeeze.dim",
                              "aten::squeeze.dims",   "aten::slice.Tensor",
                              "aten::select.int",     "aten::unbind.int",
                              "aten::split.Tensor",   "aten::split_with_sizes",
                              "aten::narrow",         "aten::alias",
                              "aten::detach",         "aten::view_as_real",
                              "aten::view_as_complex"};

/// The place of the dim that a piece is cut from, -1 for other calls.
int pieceDimArgument(const std::string &name) {
  if (name == "aten::slice.Tensor" || name == "aten::select.int" ||
      name == "aten::unbind.int" || name == "aten::narrow")
    return 1;
  if (name == "aten::split.Tensor" || name == "aten::split_with_sizes")
    return 2;
  return -1;
}

} // namespace

bool isViewCall(const std::string &name) {
  return std::find(Views.begin(), Views.end(), name) != Views.end();
}

//===- Contiguity ---------------------------------------------------------===//

bool Contiguity::isContiguous(const Role &role, int32_t value) const {
  if (role.values[value].aliasOf == None)
    return true;
  return static_cast<size_t>(value) < views.size() && views[value];
}

void Contiguity::setContiguous(int32_t value) {
  if (static_cast<size_t>(value) >= views.size())
    views.resize(value + 1);
  views[value] = true;
}

bool Contiguity::isKept(const std::string &name,
                        const std::vector<CallArg> &args,
                        const std::vector<Expr> &operandShape) {
  if (isReshape(name) || name == "aten::unsqueeze" || name == "aten::alias" ||
      name == "aten::detach" || name.starts_with("aten::view_as_") ||
      name.starts_with("aten::squeeze"))
    return true;
  int argument = pieceDimArgument(name);
  if (argument < 0)
    return false;
  // Nothing but dims of size 1 may stand before the dim that is cut.
  Expr dim = argument < static_cast<int>(args.size())
                 ? std::get<Expr>(args[argument])
                 : Expr();
  int64_t place = dim.terms.empty() ? 0 : dim.terms[0].constant;
  if (place < 0)
    place += static_cast<int64_t>(operandShape.size());
  return std::all_of(
      operandShape.begin(), operandShape.begin() + place,
      [](const Expr &size) { return size == Expr::constant(1); });
}

//===- RoleWriter ---------------------------------------------------------===//

RoleWriter::RoleWriter(Role &role) : role(role) {
  for (size_t k = 0; k < role.shards.size(); ++k)
    shardNumbers.try_emplace(role.shards[k], static_cast<int>(k));
  for (const ProgramIndex &index : role.indices)
    indexValues.try_emplace(index.list, index.value);
}

Expr RoleWriter::fold(const Expr &expr) const {
  bool isFolded = true;
  for (const Expr::Term &term : expr.terms)
    for (const ShardRef &size : term.sizes)
      isFolded &= !role.shards[size.shard].cuts.empty();
  if (isFolded)
    return expr;
  Expr sum;
  for (const Expr::Term &term : expr.terms) {
    Expr product = Expr::constant(term.constant);
    for (const ShardRef &size : term.sizes) {
      const Shard &shard = role.shards[size.shard];
      product =
          product * (shard.cuts.empty() ? Expr::constant(shard.structure.size)
                                        : Expr::size(size));
    }
    sum = sum + product;
  }
  return sum;
}

Local RoleWriter::make(DType type, std::vector<Expr> shape, std::string name,
                       Lifetime lifetime) {
  for (Expr &size : shape)
    size = fold(size);
  role.values.push_back(
      {type, std::move(shape), lifetime, None, std::move(name)});
  return {static_cast<int32_t>(role.values.size() - 1)};
}

ShardRef RoleWriter::shard(const Shard &shard) {
  auto [position, isNew] =
      shardNumbers.try_emplace(shard, static_cast<int>(role.shards.size()));
  if (isNew)
    role.shards.push_back(shard);
  return {position->second};
}

Local RoleWriter::index(const IndexList &list) {
  if (auto found = indexValues.find(list); found != indexValues.end())
    return {found->second};
  Expr size;
  for (const ShardRef &shard : list.of)
    size = size + Expr::size(shard);
  Local local =
      make(DType::Int64, {size}, "index." + std::to_string(role.indices.size()),
           Lifetime::Persistent);
  role.indices.push_back({local.value, list});
  indexValues.emplace(list, local.value);
  return local;
}

Local RoleWriter::call(std::string name, std::vector<Local> operands,
                       std::vector<CallArg> args, DType type,
                       std::vector<Expr> shape) {
  std::vector<ProgramValue> results(1);
  results[0].type = type;
  results[0].shape = std::move(shape);
  return call(std::move(name), std::move(operands), std::move(args),
              std::move(results))[0];
}

std::vector<Local> RoleWriter::call(std::string name,
                                    std::vector<Local> operands,
                                    std::vector<CallArg> args,
                                    std::vector<ProgramValue> results) {
  if (isReshape(name)) {
    name = "aten::view";
    Local source = operands[0];
    if (!isContiguous(source))
      operands[0] =
          call("aten::clone", {source}, {OperandArg{0}, Expr::constant(0)},
               role.values[source.value].type, role.values[source.value].shape);
  }
  Instruction instruction;
  bool isView = isViewCall(name);
  bool keeps =
      isView && isContiguous(operands[0]) &&
      Contiguity::isKept(name, args, role.values[operands[0].value].shape);
  std::vector<Local> locals;
  for (ProgramValue &result : results) {
    Local local = make(result.type, std::move(result.shape),
                       std::move(result.name), result.lifetime);
    if (isView) {
      role.values[local.value].aliasOf = operands[0].value;
      if (keeps)
        contiguity.setContiguous(local.value);
    }
    instruction.results.push_back(local.value);
    locals.push_back(local);
  }
  for (CallArg &arg : args) {
    if (auto *size = std::get_if<Expr>(&arg))
      *size = fold(*size);
    else if (auto *sizes = std::get_if<std::vector<Expr>>(&arg))
      for (Expr &each : *sizes)
        each = fold(each);
  }
  instruction.name = std::move(name);
  for (Local operand : operands) {
    assert(operand.defined());
    instruction.operands.push_back(operand.value);
  }
  instruction.args = std::move(args);
  append(std::move(instruction));
  return locals;
}

Local RoleWriter::allReduce(Local tensor, const std::vector<int> &axes,
                            std::string_view reduction) {
  if (axes.empty())
    return tensor;
  assert(isContiguous(tensor));
  Instruction instruction;
  instruction.kind = InstructionKind::AllReduce;
  instruction.name = reduction;
  instruction.operands = {tensor.value};
  instruction.axes = axes;
  append(std::move(instruction));
  return tensor;
}

void RoleWriter::append(Instruction instruction) {
  assert(target);
  instruction.op = op;
  target->push_back(std::move(instruction));
}

} // namespace monarch
