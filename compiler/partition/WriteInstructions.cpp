//===- WriteInstructions.cpp - instructions as ops of dist ----------------===//

#include "compiler/partition/WriteRole.h"
#include "dialects/aten/Locations.h"

using namespace mlir;

namespace monarch::parts {

InstructionWriter::InstructionWriter(OpBuilder &builder, const Role &role,
                                     const Graph &graph)
    : locals(role.values.size()), builder(builder), role(role), graph(graph) {
  types.reserve(role.values.size());
  for (const ProgramValue &value : role.values)
    types.push_back(
        dist::localType(value.type, value.shape, builder.getContext()));
}

dist::ValueAttr InstructionWriter::infoOf(int32_t value) const {
  const ProgramValue &entry = role.values[value];
  return dist::ValueAttr::get(
      builder.getContext(), {value, entry.lifetime, entry.aliasOf, entry.name});
}

SmallVector<mlir::Value>
InstructionWriter::localsOf(const std::vector<int32_t> &values) const {
  return llvm::map_to_vector(values,
                             [&](int32_t value) { return locals[value]; });
}

SmallVector<Type>
InstructionWriter::typesOf(const std::vector<int32_t> &values) const {
  return llvm::map_to_vector(values,
                             [&](int32_t value) { return Type(types[value]); });
}

Location InstructionWriter::placeOf(const Instruction &instruction) const {
  if (instruction.op == None)
    return builder.getUnknownLoc();
  return aten::locationOf(graph.ops[instruction.op], builder.getContext());
}

void InstructionWriter::writeCall(const Instruction &instruction) {
  MLIRContext *context = builder.getContext();
  SmallVector<Type> resultTypes;
  SmallVector<Attribute> values, arguments;
  for (int32_t result : instruction.results) {
    resultTypes.push_back(result == None ? Type(builder.getNoneType())
                                         : Type(types[result]));
    values.push_back(result == None ? Attribute(builder.getUnitAttr())
                                    : Attribute(infoOf(result)));
  }
  for (const CallArg &arg : instruction.args)
    arguments.push_back(dist::attributeOf(arg, context));
  IntegerAttr op;
  if (instruction.op != None)
    op = builder.getI32IntegerAttr(instruction.op);
  auto call = dist::CallOp::create(
      builder, placeOf(instruction), resultTypes,
      localsOf(instruction.operands), builder.getStringAttr(instruction.name),
      builder.getArrayAttr(arguments), builder.getArrayAttr(values), op);
  for (auto [result, made] :
       llvm::zip_equal(instruction.results, call.getResults()))
    if (result != None)
      locals[result] = made;
}

void InstructionWriter::write(const Instruction &instruction) {
  MLIRContext *context = builder.getContext();
  const Location place = placeOf(instruction);
  IntegerAttr op;
  if (instruction.op != None)
    op = builder.getI32IntegerAttr(instruction.op);
  const SmallVector<mlir::Value> operands = localsOf(instruction.operands);
  auto axes = builder.getDenseI32ArrayAttr(instruction.axes);
  auto sizes = [&](const std::vector<Expr> &list) {
    return dist::SizesAttr::get(context, list);
  };
  auto peer = builder.getI32IntegerAttr(instruction.peerStage);
  auto tag = builder.getI64IntegerAttr(instruction.tag);
  auto name = builder.getStringAttr(instruction.name);
  Type type;
  dist::ValueAttr value;
  if (instruction.kind != InstructionKind::Call &&
      !instruction.results.empty()) {
    type = types[instruction.results[0]];
    value = infoOf(instruction.results[0]);
  }
  mlir::Value made;
  switch (instruction.kind) {
  case InstructionKind::Call:
    return writeCall(instruction);
  case InstructionKind::AllReduce:
    dist::AllReduceOp::create(builder, place, operands[0], name, axes, op);
    return;
  case InstructionKind::AllGather:
    made =
        dist::AllGatherOp::create(builder, place, type, operands[0], axes,
                                  sizes(instruction.receiveSizes), value, op);
    break;
  case InstructionKind::ReduceScatter:
    made = dist::ReduceScatterOp::create(
        builder, place, type, operands[0], axes, name,
        sizes(instruction.sendSizes), value, op);
    break;
  case InstructionKind::AllToAll:
    made = dist::AllToAllOp::create(builder, place, type, operands[0], axes,
                                    sizes(instruction.sendSizes),
                                    sizes(instruction.receiveSizes), value, op);
    break;
  case InstructionKind::Send:
    dist::SendOp::create(builder, place, operands[0], peer, tag, op);
    return;
  case InstructionKind::Receive:
    made = dist::ReceiveOp::create(builder, place, type, peer, tag, value, op);
    break;
  case InstructionKind::Zero:
    made = dist::ZeroOp::create(builder, place, type, operands[0], axes, value,
                                op);
    break;
  case InstructionKind::Update:
    dist::UpdateOp::create(builder, place, operands[0], operands[1], name, op);
    return;
  case InstructionKind::Free:
    dist::FreeOp::create(builder, place, operands, op);
    return;
  }
  locals[instruction.results[0]] = made;
}

} // namespace monarch::parts
