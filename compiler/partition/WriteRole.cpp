//===- WriteRole.cpp - one role as a dist op ------------------------------===//

#include "compiler/partition/WriteRole.h"
#include "dialects/aten/Leaves.h"
#include "dialects/aten/Locations.h"

#include <fmt/format.h>

using namespace mlir;

namespace monarch::parts {

namespace {

class RoleWriter {
public:
  RoleWriter(OpBuilder &builder, const Role &role, const RolePieces &pieces,
             const Graph &graph)
      : builder(builder), context(builder.getContext()),
        unknown(builder.getUnknownLoc()), role(role), pieces(pieces),
        graph(graph), instructions(builder, role, graph),
        globals(pieces.globals.size()) {}

  void write() {
    OpBuilder::InsertionGuard guard(builder);
    SmallVector<Attribute> shards, schedule;
    for (const Shard &shard : role.shards)
      shards.push_back(dist::ShardAttr::get(context, shard));
    for (const Slot &slot : role.schedule)
      schedule.push_back(dist::SlotAttr::get(context, slot));
    auto op = dist::RoleOp::create(
        builder, unknown, fmt::format("stage{}", role.stage), role.stage,
        builder.getArrayAttr(shards), builder.getArrayAttr(schedule));
    builder.createBlock(&op.getBody());
    writeLeaves();
    for (size_t s = 0; s < role.segments.size(); ++s)
      writeSegment(role.segments[s], pieces.segments[s]);
    writeRoots();
  }

private:
  //===- Leaves and roots -------------------------------------------------===//

  ArrayAttr structureOf(const TensorStructure &structure) {
    SmallVector<Attribute> dims;
    for (const DimStructure &dim : structure)
      dims.push_back(dist::DimAttr::get(context, dim));
    return builder.getArrayAttr(dims);
  }
  dist::SizesAttr shardsOf(const std::vector<ShardRef> &refs) {
    std::vector<Expr> sizes;
    for (const ShardRef &ref : refs)
      sizes.push_back(Expr::size(ref));
    return dist::SizesAttr::get(context, sizes);
  }

  void writeLeaves() {
    std::vector<mlir::Value> &locals = instructions.locals;
    auto type = [&](int32_t value) { return instructions.typeOf(value); };
    auto info = [&](int32_t value) { return instructions.infoOf(value); };
    for (const ProgramParameter &leaf : role.parameters)
      locals[leaf.value] = dist::ParameterOp::create(
          builder, unknown, type(leaf.value), info(leaf.value),
          aten::attributeOf(leaf.names, context),
          aten::attributeOf(leaf.storage, context), structureOf(leaf.structure),
          dist::LayoutAttr::get(context, leaf.layout), !leaf.trainable,
          !leaf.owner);
    for (const ProgramBuffer &leaf : role.buffers)
      locals[leaf.value] = dist::BufferOp::create(
          builder, unknown, type(leaf.value), info(leaf.value),
          aten::attributeOf(leaf.names, context),
          aten::attributeOf(leaf.storage, context), structureOf(leaf.structure),
          leaf.constant);
    for (const ProgramInput &leaf : role.inputs)
      locals[leaf.value] = dist::InputOp::create(
          builder, unknown, type(leaf.value), info(leaf.value), leaf.name,
          structureOf(leaf.structure),
          dist::LayoutAttr::get(context, leaf.layout), leaf.rowDim, leaf.bound);
    for (const ProgramIndex &leaf : role.indices)
      locals[leaf.value] = dist::IndexOp::create(
          builder, unknown, type(leaf.value), info(leaf.value),
          shardsOf(leaf.list.of), shardsOf(leaf.list.in));

    std::vector<char> isMade(role.values.size());
    for (const Segment &segment : role.segments)
      for (const Instruction &instruction : segment.instructions)
        for (int32_t result : instruction.results)
          if (result != None)
            isMade[result] = true;
    for (size_t v = 0; v < role.values.size(); ++v)
      if (!isMade[v] && !locals[v])
        locals[v] = dist::StateOp::create(builder, unknown, type(v), info(v));
    for (int leaf : pieces.leaves)
      globals[leaf] = dist::GlobalLeafOp::create(
          builder, unknown, globalType(leaf), pieces.globals[leaf].value);
  }

  void writeRoots() {
    auto local = [&](int32_t value) {
      return value == None ? mlir::Value() : instructions.locals[value];
    };
    for (const ProgramParameter &parameter : role.parameters)
      if (parameter.gradient != None)
        dist::GradientOp::create(
            builder, unknown, instructions.locals[parameter.value],
            instructions.locals[parameter.gradient], local(parameter.master));
    const ProgramScalars &scalars = role.scalars;
    dist::RootsOp::create(builder, unknown, instructions.localsOf(role.zeroed),
                          local(scalars.random), local(scalars.loss),
                          local(scalars.squaredNorm), local(scalars.seed));
  }

  //===- Segments and steps -----------------------------------------------===//

  RankedTensorType globalType(int tensor) {
    const GlobalTensor &global = pieces.globals[tensor];
    const Value &value = graph.values[global.value];
    return RankedTensorType::get(value.shape,
                                 aten::elementType(value.type, context),
                                 dist::LayoutAttr::get(context, global.layout));
  }
  SmallVector<Type> globalTypes(const std::vector<int> &tensors) {
    return llvm::map_to_vector(
        tensors, [&](int tensor) { return Type(globalType(tensor)); });
  }
  SmallVector<mlir::Value> globalsOf(const std::vector<int> &tensors) {
    return llvm::map_to_vector(tensors,
                               [&](int tensor) { return globals[tensor]; });
  }
  template <typename Keys, typename Map>
  static void assign(const Keys &keys, ResultRange results, Map &map) {
    for (auto [key, result] : llvm::zip_equal(keys, results))
      map[key] = result;
  }

  void writeSegment(const Segment &segment, const SegmentPieces &made) {
    StringRef kind = toString(segment.kind);
    auto op = dist::SegmentOp::create(
        builder, unknown, globalTypes(made.leavingGlobals),
        instructions.typesOf(made.leaving), builder.getStringAttr(kind));
    {
      OpBuilder::InsertionGuard guard(builder);
      builder.createBlock(&op.getBody());
      for (const Piece &piece : made.pieces)
        writePiece(segment, piece);
      dist::YieldOp::create(builder, unknown, globalsOf(made.leavingGlobals),
                            instructions.localsOf(made.leaving));
    }
    assign(made.leavingGlobals, op.getGlobals(), globals);
    assign(made.leaving, op.getLocals(), instructions.locals);
  }

  void writePiece(const Segment &segment, const Piece &piece) {
    auto writeBody = [&] {
      for (size_t i = piece.begin; i < piece.end; ++i)
        instructions.write(segment.instructions[i]);
    };
    if (!piece.step)
      return writeBody();

    const planner::ResolvedStep &step = *piece.step;
    const SmallVector<mlir::Value> reads = globalsOf(piece.reads);
    const SmallVector<Type> makes = globalTypes(piece.makes);
    const SmallVector<Type> leaving = instructions.typesOf(piece.leaving);
    auto finish = [&](auto op) {
      {
        OpBuilder::InsertionGuard guard(builder);
        builder.createBlock(&op.getBody());
        writeBody();
        dist::YieldOp::create(builder, unknown, ValueRange(),
                              instructions.localsOf(piece.leaving));
      }
      assign(piece.makes, op.getGlobals(), globals);
      assign(piece.leaving, op.getLocals(), instructions.locals);
    };
    switch (step.kind) {
    case planner::ResolvedStep::Kind::Op: {
      const Op &op = graph.ops[step.op];
      SmallVector<Attribute> arguments;
      for (const Arg &arg : op.args)
        arguments.push_back(aten::attributeOf(arg, context));
      return finish(dist::OpOp::create(
          builder, aten::locationOf(op, context), makes, leaving, reads,
          builder.getStringAttr(op.name), builder.getArrayAttr(arguments),
          builder.getI32IntegerAttr(step.op)));
    }
    case planner::ResolvedStep::Kind::Reshard:
      return finish(dist::ReshardOp::create(builder, unknown, makes, leaving,
                                            reads[0], step.value));
    case planner::ResolvedStep::Kind::Transfer:
      return finish(
          dist::TransferOp::create(builder, unknown, makes, leaving,
                                   reads.empty() ? mlir::Value() : reads[0],
                                   step.value, step.peerStage));
    case planner::ResolvedStep::Kind::Leaf:
    case planner::ResolvedStep::Kind::Finish:
      return finish(dist::FinishOp::create(builder, unknown, makes, leaving,
                                           reads, step.value));
    }
  }

  OpBuilder &builder;
  MLIRContext *context;
  Location unknown;
  const Role &role;
  const RolePieces &pieces;
  const Graph &graph;
  InstructionWriter instructions;
  std::vector<mlir::Value> globals;
};

} // namespace

void writeRole(OpBuilder &builder, const Role &role, const RolePieces &pieces,
               const Graph &graph) {
  RoleWriter(builder, role, pieces, graph).write();
}

} // namespace monarch::parts
