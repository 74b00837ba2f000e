#include "planner/resolve/WriteMoves.h"

#include <algorithm>
#include <numeric>

namespace monarch::planner {
namespace {

Expr elements(const std::vector<Expr> &shape) {
  Expr count = Expr::constant(1);
  for (const Expr &size : shape)
    count = count * size;
  return count;
}

Expr sum(const std::vector<Expr> &sizes) {
  Expr total;
  for (const Expr &size : sizes)
    total = total + size;
  return total;
}

// Blocks along the dim, taken in peer order, are the whole in its own order:
// the cut factor is the outermost of the only section.
bool inPeerOrder(const TensorStructure &structure, const AxisState &split) {
  return structure[split.dim].sections.size() == 1 && split.factors[0] == 0;
}

// No dim in front of it is larger than 1: blocks along the dim are contiguous.
bool leads(const TensorStructure &structure, int dim) {
  for (int d = 0; d < dim; ++d)
    if (structure[d].size != 1)
      return false;
  return true;
}

class MoveWriter {
public:
  MoveWriter(RoleWriter &writer, const Mesh &mesh,
             const TensorStructure &structure, const Move &move, Local tensor)
      : writer(writer), structure(structure), move(move), tensor(tensor),
        type(writer[tensor].type), peers(mesh.axes[move.axis].size) {}

  Local write() {
    switch (move.kind) {
    case MoveKind::AllReduce:
      break; // writeMoves takes them together
    case MoveKind::ReduceScatter:
      return reduceScatter();
    case MoveKind::AllGather:
      return allGather();
    case MoveKind::AllToAll:
      return allToAll();
    case MoveKind::Slice:
      return select(tensor, targetState().dim, sliceList(),
                    shapeUnder(move.to));
    case MoveKind::Zero:
      return zero();
    case MoveKind::Embed:
      return embed();
    }
    assert(false && "not a move of its own");
    return tensor;
  }

private:
  RoleWriter &writer;
  const TensorStructure &structure;
  const Move &move;
  const Local tensor;
  const DType type;
  const int64_t peers;

  const AxisState &sourceState() const { return move.from.states[move.axis]; }
  const AxisState &targetState() const { return move.to.states[move.axis]; }

  ShardRef shard(const Layout &layout, int dim) {
    return writer.shard(shardOf(structure[dim], dim, layout));
  }
  ShardRef shardAt(const Layout &layout, int dim, int64_t peer) {
    ShardRef ref = shard(layout, dim);
    ref.peerAxis = move.axis;
    ref.peer = peer;
    return ref;
  }
  std::vector<Expr> shapeUnder(const Layout &layout) {
    return localShape(writer, structure, layout);
  }

  Local select(Local from, int dim, const IndexList &list,
               std::vector<Expr> shape) {
    const Local index = writer.index(list);
    return writer.call("aten::index_select", {from, index},
                       {OperandArg{0}, Expr::constant(dim), OperandArg{1}},
                       type, std::move(shape));
  }
  Local reshape(Local from, std::vector<Expr> shape) {
    return writer.call("aten::reshape", {from}, {OperandArg{0}, shape}, type,
                       shape);
  }
  Local flatten(Local from) {
    return reshape(from, {elements(writer[from].shape)});
  }
  Local concatenate(const std::vector<Local> &parts, int dim,
                    std::vector<Expr> shape) {
    OperandListArg list;
    list.indices.resize(parts.size());
    std::iota(list.indices.begin(), list.indices.end(), 0);
    return writer.call("aten::cat", parts, {list, Expr::constant(dim)}, type,
                       std::move(shape));
  }
  std::vector<Local> split(Local from, int dim,
                           const std::vector<Expr> &sizes) {
    std::vector<ProgramValue> parts;
    for (const Expr &size : sizes) {
      ProgramValue part;
      part.type = type;
      part.shape = writer[from].shape;
      part.shape[dim] = size;
      parts.push_back(std::move(part));
    }
    return writer.call("aten::split_with_sizes", {from},
                       {OperandArg{0}, sizes, Expr::constant(dim)},
                       std::move(parts));
  }

  IndexList sliceList() {
    const int dim = targetState().dim;
    return {{shard(move.to, dim)}, {shard(move.from, dim)}};
  }

  // The flat buffer whose i-th block is what peer i gets of the target's dim.
  Local pack(std::vector<Expr> &sizes) {
    const int dim = targetState().dim;
    const bool ordered = inPeerOrder(structure, targetState());
    std::vector<Expr> extents;
    for (int64_t i = 0; i < peers; ++i) {
      std::vector<Expr> shape = shapeUnder(move.from);
      shape[dim] = Expr::size(shardAt(move.to, dim, i));
      extents.push_back(shape[dim]);
      sizes.push_back(elements(shape));
    }
    if (ordered && leads(structure, dim))
      return contiguous(writer, flatten(tensor));
    std::vector<Local> parts;
    if (ordered)
      parts = split(tensor, dim, extents);
    else
      for (int64_t i = 0; i < peers; ++i) {
        std::vector<Expr> shape = shapeUnder(move.from);
        shape[dim] = extents[i];
        parts.push_back(select(
            tensor, dim, {{shardAt(move.to, dim, i)}, {shard(move.from, dim)}},
            std::move(shape)));
      }
    for (Local &part : parts)
      part = flatten(part);
    return concatenate(parts, 0, {sum(sizes)});
  }

  // The reverse along the source's dim: block i is what peer i held of it.
  Local unpack(Local flat, const std::vector<std::vector<Expr>> &blocks) {
    const int dim = sourceState().dim;
    const bool ordered = inPeerOrder(structure, sourceState());
    const std::vector<Expr> shape = shapeUnder(move.to);
    if (ordered && leads(structure, dim))
      return reshape(flat, shape);
    std::vector<Expr> sizes, extents;
    for (const auto &block : blocks) {
      sizes.push_back(elements(block));
      extents.push_back(block[dim]);
    }
    std::vector<Local> parts = split(flat, 0, sizes);
    for (int64_t i = 0; i < peers; ++i)
      parts[i] = reshape(parts[i], blocks[i]);
    const Local whole = concatenate(parts, dim, shape);
    if (ordered)
      return whole;
    IndexList order{{shard(move.to, dim)}, {}};
    for (int64_t i = 0; i < peers; ++i)
      order.in.push_back(shardAt(move.from, dim, i));
    return select(whole, dim, order, shape);
  }

  std::vector<Expr> sizesOf(const std::vector<std::vector<Expr>> &blocks) {
    std::vector<Expr> sizes;
    for (const auto &block : blocks)
      sizes.push_back(elements(block));
    return sizes;
  }

  Local exchange(InstructionKind kind, Local flat, std::vector<Expr> sendSizes,
                 std::vector<Expr> receiveSizes, Expr resultSize) {
    const Local result = writer.make(type, {std::move(resultSize)});
    Instruction instruction;
    instruction.kind = kind;
    if (kind == InstructionKind::ReduceScatter)
      instruction.name = "sum";
    instruction.operands = {flat.value};
    instruction.results = {result.value};
    instruction.axes = {move.axis};
    instruction.sendSizes = std::move(sendSizes);
    instruction.receiveSizes = std::move(receiveSizes);
    writer.append(std::move(instruction));
    return result;
  }

  Local reduceScatter() {
    std::vector<Expr> sizes;
    const Local flat = pack(sizes);
    const std::vector<Expr> shape = shapeUnder(move.to);
    return reshape(exchange(InstructionKind::ReduceScatter, flat, sizes, {},
                            elements(shape)),
                   shape);
  }

  Local allGather() {
    const int dim = sourceState().dim;
    std::vector<std::vector<Expr>> blocks;
    for (int64_t i = 0; i < peers; ++i) {
      blocks.push_back(shapeUnder(move.from));
      blocks.back()[dim] = Expr::size(shardAt(move.from, dim, i));
    }
    const std::vector<Expr> sizes = sizesOf(blocks);
    const Local own = contiguous(writer, flatten(tensor));
    return unpack(
        exchange(InstructionKind::AllGather, own, {}, sizes, sum(sizes)),
        blocks);
  }

  Local allToAll() {
    std::vector<Expr> sendSizes;
    const Local flat = pack(sendSizes);
    const int dim = sourceState().dim;
    std::vector<std::vector<Expr>> blocks;
    for (int64_t i = 0; i < peers; ++i) {
      blocks.push_back(shapeUnder(move.to));
      blocks.back()[dim] = Expr::size(shardAt(move.from, dim, i));
    }
    const std::vector<Expr> receiveSizes = sizesOf(blocks);
    return unpack(exchange(InstructionKind::AllToAll, flat, sendSizes,
                           receiveSizes, sum(receiveSizes)),
                  blocks);
  }

  Local zero() {
    const Local result = writer.make(type, writer[tensor].shape);
    writer.role.values[result.value].aliasOf = tensor.value;
    Instruction instruction;
    instruction.kind = InstructionKind::Zero;
    instruction.operands = {tensor.value};
    instruction.results = {result.value};
    instruction.axes = {move.axis};
    writer.append(std::move(instruction));
    return result;
  }

  Local embed() {
    const int dim = sourceState().dim;
    const std::vector<Expr> shape = shapeUnder(move.to);
    const Local zeros =
        writer.call("aten::new_zeros", {tensor},
                    {OperandArg{0}, shape, std::monostate(), std::monostate(),
                     std::monostate(), std::monostate()},
                    type, shape);
    const Local index =
        writer.index({{shard(move.from, dim)}, {shard(move.to, dim)}});
    return writer.call(
        "aten::index_copy", {zeros, index, tensor},
        {OperandArg{0}, Expr::constant(dim), OperandArg{1}, OperandArg{2}},
        type, shape);
  }
};

} // namespace

std::vector<Expr> localShape(RoleWriter &writer,
                             const TensorStructure &structure,
                             const Layout &layout) {
  std::vector<Expr> shape;
  for (size_t d = 0; d < structure.size(); ++d)
    shape.push_back(Expr::size(
        writer.shard(shardOf(structure[d], static_cast<int>(d), layout))));
  return shape;
}

Local contiguous(RoleWriter &writer, Local tensor) {
  if (writer.isContiguous(tensor))
    return tensor;
  return writer.call("aten::clone", {tensor},
                     {OperandArg{0}, Expr::constant(0)}, writer[tensor].type,
                     writer[tensor].shape);
}

Local writeMoves(RoleWriter &writer, const Mesh &mesh,
                 const TensorStructure &structure,
                 const std::vector<Move> &moves, Local tensor,
                 bool mayOverwrite) {
  for (size_t i = 0; i < moves.size();) {
    if (moves[i].kind != MoveKind::AllReduce) {
      tensor = MoveWriter(writer, mesh, structure, moves[i], tensor).write();
      mayOverwrite = moves[i++].kind != MoveKind::Zero;
      continue;
    }
    std::vector<int> axes;
    for (; i < moves.size() && moves[i].kind == MoveKind::AllReduce; ++i)
      axes.push_back(moves[i].axis);
    std::sort(axes.begin(), axes.end());
    // In place: an operand that may be read again is copied first.
    if (!mayOverwrite)
      tensor = writer.call("aten::clone", {tensor},
                           {OperandArg{0}, Expr::constant(0)},
                           writer[tensor].type, writer[tensor].shape);
    tensor = writer.allReduce(tensor, axes, "sum");
  }
  return tensor;
}

} // namespace monarch::planner
