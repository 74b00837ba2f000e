//===- Emit.cpp - the program of a dist module ----------------------------===//

#include "compiler/emit/Emit.h"
#include "compiler/emit/ReadRole.h"
#include "core/program/ProgramFormat.h"

using namespace mlir;

namespace monarch {

static Error malformed(std::string what) {
  return {"MP2401", ExitCode::Internal, std::move(what), "",
          "report this with the output of --dump-phases"};
}

static std::map<std::string, int64_t> countsOf(DictionaryAttr dictionary) {
  std::map<std::string, int64_t> counts;
  for (NamedAttribute entry : dictionary)
    if (auto count = dyn_cast<IntegerAttr>(entry.getValue()))
      counts[entry.getName().str()] = count.getInt();
  return counts;
}

Expected<Program> emit(ModuleOp module) {
  auto programs = module.getOps<dist::ProgramOp>();
  if (!llvm::hasSingleElement(programs))
    return malformed("the module does not hold exactly one dist.program");
  dist::ProgramOp op = *programs.begin();
  Program program;
  program.modelDigest = op.getModel().str();
  program.planDigest = op.getPlan().str();
  program.mesh = op.getMesh().getValue();
  for (dist::TableAttr table : op.getTables().getAsRange<dist::TableAttr>())
    program.tables.set(table.getValue().extent, table.getValue().parts,
                       table.getValue().offsets);
  auto optimizer = parseEnumerator<OptimizerKind>(op.getOptimizer().str());
  if (!optimizer)
    return malformed("the module names an unknown optimizer");
  program.optimizer = *optimizer;
  program.globalRows = static_cast<int64_t>(op.getGlobalRows());
  program.unitRows = static_cast<int64_t>(op.getUnitRows());
  program.unitsPerReplica = static_cast<int64_t>(op.getUnitsPerReplica());
  program.predicted = {countsOf(op.getBytes()), countsOf(op.getCollectives())};
  program.predictedPeakBytes = static_cast<int64_t>(op.getPeakBytes());
  for (auto role : op.getBody().getOps<dist::RoleOp>()) {
    std::string mistake;
    program.roles.push_back(readRole(role, mistake));
    if (!mistake.empty())
      return malformed(mistake);
  }
  return program;
}

} // namespace monarch
