//===- Partition.cpp - a resolved plan as a dist module -------------------===//

#include "compiler/partition/Partition.h"
#include "compiler/partition/WriteRole.h"

using namespace mlir;

namespace monarch {

static DictionaryAttr
dictionaryOf(OpBuilder &builder, const std::map<std::string, int64_t> &counts) {
  SmallVector<NamedAttribute> entries;
  for (const auto &[name, count] : counts)
    entries.emplace_back(builder.getStringAttr(name),
                         builder.getI64IntegerAttr(count));
  return builder.getDictionaryAttr(entries);
}

OwningOpRef<ModuleOp> partition(const planner::Resolved &resolved,
                                const Graph &graph, MLIRContext &context) {
  context.loadDialect<dist::DistDialect>();
  const Program &program = resolved.program;
  OpBuilder builder(&context);
  Location unknown = builder.getUnknownLoc();
  OwningOpRef<ModuleOp> module = ModuleOp::create(unknown);
  builder.setInsertionPointToEnd(module->getBody());

  SmallVector<Attribute> tables;
  for (const auto &[key, offsets] : program.tables.exceptions())
    tables.push_back(
        dist::TableAttr::get(&context, {key.first, key.second, offsets}));
  StringRef optimizer = toString(program.optimizer);
  auto op = dist::ProgramOp::create(
      builder, unknown, program.modelDigest, program.planDigest,
      dist::MeshAttr::get(&context, program.mesh), builder.getArrayAttr(tables),
      optimizer, program.globalRows, program.unitRows, program.unitsPerReplica,
      dictionaryOf(builder, program.predicted.bytes),
      dictionaryOf(builder, program.predicted.collectives),
      program.predictedPeakBytes);
  builder.createBlock(&op.getBody());
  for (size_t stage = 0; stage < program.roles.size(); ++stage) {
    const Role &role = program.roles[stage];
    parts::writeRole(
        builder, role,
        parts::piecesOf(role, resolved.steps[stage], resolved, graph), graph);
  }
  return module;
}

} // namespace monarch
