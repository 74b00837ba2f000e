//===- ToAten.cpp - a joint graph as an aten module -----------------------===//
//
// Leaves and calls in the order of their values, then the facts about them.
// Module paths and source lines become locations.
//
//===----------------------------------------------------------------------===//
#include "compiler/analyze/AtenGraph.h"
#include "dialects/aten/AtenDialect.h"
#include "dialects/aten/Leaves.h"
#include "dialects/aten/Locations.h"

#include "mlir/IR/Builders.h"

#include <set>

using namespace mlir;

namespace monarch {

namespace {

class AtenWriter {
public:
  AtenWriter(const Graph &graph, MLIRContext &context)
      : graph(graph), context(context), builder(&context),
        unknown(builder.getUnknownLoc()), made(graph.values.size()) {}

  OwningOpRef<ModuleOp> write() {
    OwningOpRef<ModuleOp> module = ModuleOp::create(unknown);
    builder.setInsertionPointToEnd(module->getBody());
    auto op = aten::GraphOp::create(builder, unknown, graph.unitRows,
                                    graph.dynamicBatch, !graph.separable);
    builder.createBlock(&op.getBody());
    indexLeaves();
    for (const Op &op : graph.ops)
      if (op.forward != None)
        nodes.insert(op.forward);

    OpId next = 0;
    const OpId count = static_cast<OpId>(graph.ops.size());
    for (size_t id = 0; id < graph.values.size(); ++id) {
      const Value &value = graph.values[id];
      if (value.kind != ValueKind::Result)
        made[id] = writeLeaf(static_cast<ValueId>(id));
      else
        while (next <= value.producer)
          writeCall(next++);
    }
    while (next < count)
      writeCall(next++);
    writeFacts();
    return module;
  }

private:
  void indexLeaves() {
    for (const Parameter &parameter : graph.parameters)
      parameters[parameter.value] = &parameter;
    for (const Buffer &buffer : graph.buffers)
      buffers[buffer.value] = &buffer;
    for (size_t i = 0; i < graph.constants.size(); ++i)
      constants[graph.constants[i]] = &graph.constantStorage[i];
  }

  RankedTensorType typeOf(const Value &value) {
    bool scales = llvm::any_of(value.batch, [](int64_t f) { return f != 0; });
    Attribute encoding =
        scales ? aten::BatchAttr::get(&context, value.batch) : Attribute();
    return RankedTensorType::get(
        value.shape, aten::elementType(value.type, &context), encoding);
  }
  SmallVector<mlir::Value> valuesOf(const std::vector<ValueId> &ids) {
    return llvm::map_to_vector(ids, [&](ValueId id) { return made[id]; });
  }

  mlir::Value writeLeaf(ValueId id) {
    const Value &value = graph.values[id];
    Type type = typeOf(value);
    switch (value.kind) {
    case ValueKind::Parameter: {
      const Parameter &leaf = *parameters.at(id);
      return aten::ParameterOp::create(
          builder, unknown, type, aten::attributeOf(leaf.names, &context),
          !leaf.trainable, aten::attributeOf(leaf.storage, &context));
    }
    case ValueKind::Buffer: {
      const Buffer &leaf = *buffers.at(id);
      return aten::BufferOp::create(
          builder, unknown, type, aten::attributeOf(leaf.names, &context),
          !leaf.persistent, aten::attributeOf(leaf.storage, &context));
    }
    case ValueKind::Input:
      return aten::InputOp::create(builder, unknown, type, value.name);
    case ValueKind::Constant:
      return aten::ConstantOp::create(
          builder, unknown, type, value.name,
          aten::attributeOf(*constants.at(id), &context));
    case ValueKind::Random:
      return aten::RandomOp::create(builder, unknown, type, value.name);
    case ValueKind::InverseCount:
      return aten::InverseCountOp::create(builder, unknown, type, value.name);
    case ValueKind::Seed:
      return aten::SeedOp::create(builder, unknown, type, value.name);
    case ValueKind::Result:
      break;
    }
    llvm_unreachable("results are made by calls");
  }

  void writeCall(OpId id) {
    const Op &op = graph.ops[id];
    SmallVector<Type> types;
    for (ValueId result : op.results)
      types.push_back(result == None ? Type(builder.getNoneType())
                                     : typeOf(graph.values[result]));
    SmallVector<Attribute> arguments;
    for (const Arg &arg : op.args)
      arguments.push_back(aten::attributeOf(arg, &context));
    IntegerAttr node, forward;
    if (nodes.contains(id))
      node = builder.getI64IntegerAttr(id);
    if (op.forward != None)
      forward = builder.getI64IntegerAttr(op.forward);
    auto call = aten::CallOp::create(
        builder, aten::locationOf(op, &context), types, valuesOf(op.operands),
        builder.getStringAttr(op.name), builder.getArrayAttr(arguments), node,
        op.phase == Phase::Backward ? builder.getUnitAttr() : UnitAttr(),
        forward);
    for (auto [result, value] : llvm::zip_equal(op.results, call.getResults()))
      if (result != None)
        made[result] = value;
  }

  void writeFacts() {
    for (size_t id = 0; id < graph.values.size(); ++id)
      if (!graph.values[id].cotangentOf.empty())
        aten::CotangentOp::create(builder, unknown, made[id],
                                  valuesOf(graph.values[id].cotangentOf));
    for (const Parameter &parameter : graph.parameters)
      if (!parameter.gradients.empty())
        aten::GradientsOp::create(builder, unknown, made[parameter.value],
                                  valuesOf(parameter.gradients));
    for (const Buffer &buffer : graph.buffers)
      if (buffer.updated != None)
        aten::UpdateOp::create(builder, unknown, made[buffer.value],
                               made[buffer.updated]);
    for (const LossCount &count : graph.counts)
      aten::CountOp::create(builder, unknown, made[count.inverseCount],
                            count.target == None ? mlir::Value()
                                                 : made[count.target],
                            count.ignoreIndex, count.perUnit);
    aten::ReturnOp::create(
        builder, unknown, graph.loss == None ? mlir::Value() : made[graph.loss],
        valuesOf(graph.outputs));
  }

  const Graph &graph;
  MLIRContext &context;
  OpBuilder builder;
  Location unknown;
  std::vector<mlir::Value> made;
  std::map<ValueId, const Parameter *> parameters;
  std::map<ValueId, const Buffer *> buffers;
  std::map<ValueId, const Storage *> constants;
  /// Forward ops that backward ops refer to.
  std::set<OpId> nodes;
};

} // namespace

OwningOpRef<ModuleOp> toAten(const Graph &graph, MLIRContext &context) {
  context.loadDialect<aten::AtenDialect>();
  return AtenWriter(graph, context).write();
}

} // namespace monarch
