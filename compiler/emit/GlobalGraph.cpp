//===- GlobalGraph.cpp - the graph that a global-form module computes -----===//

#include "compiler/emit/GlobalGraph.h"
#include "dialects/dist/DistDialect.h"

#include "llvm/ADT/DenseMap.h"

#include <fmt/format.h>
#include <map>

using namespace mlir;

namespace monarch {

namespace {

Error malformed(std::string what) {
  return {"MP2403", ExitCode::Internal, std::move(what), "",
          "report this with the output of --dump-phases"};
}

class GlobalReader {
public:
  explicit GlobalReader(const Graph &graph) : graph(graph), result(graph) {}

  Expected<Graph> read(dist::ProgramOp program) {
    for (auto role : program.getBody().getOps<dist::RoleOp>())
      role.walk([&](dist::TransferOp transfer) {
        if (transfer.getOperand())
          sent[{role.getStage(), transfer.getPeer(), transfer.getValue()}] =
              transfer.getOperand();
      });
    for (auto role : program.getBody().getOps<dist::RoleOp>())
      role.walk([&](dist::OpOp op) { readOp(op); });
    if (!mistake.empty())
      return malformed(mistake);
    return std::move(result);
  }

private:
  void fail(std::string what) {
    if (mistake.empty())
      mistake = std::move(what);
  }

  void readOp(dist::OpOp step) {
    const size_t id = step.getOp();
    if (id >= result.ops.size() ||
        step.getOperands().size() != result.ops[id].operands.size())
      return fail(fmt::format("step of op {} is not one of the graph's", id));
    Op op = graph.ops[id];
    op.name = step.getCallee().str();
    op.args.clear();
    for (Attribute argument : step.getArguments()) {
      std::optional<Arg> arg = aten::argOf(argument);
      if (!arg)
        return fail(fmt::format("step of op {} has no literal there", id));
      op.args.push_back(std::move(*arg));
    }
    for (size_t k = 0; k < op.operands.size(); ++k)
      op.operands[k] = valueOf(step.getOperands()[k]);
    result.ops[id] = std::move(op);
  }

  /// The value of the graph that a global tensor is.
  ValueId valueOf(mlir::Value tensor) {
    auto [found, isNew] = known.try_emplace(tensor, None);
    if (!isNew)
      return found->second;
    const ValueId value = trace(cast<OpResult>(tensor));
    known[tensor] = value;
    return value;
  }

  ValueId trace(OpResult tensor) {
    Operation *op = tensor.getOwner();
    if (auto segment = dyn_cast<dist::SegmentOp>(op)) {
      auto yield = cast<dist::YieldOp>(segment.getBody().front().back());
      return valueOf(yield.getGlobals()[tensor.getResultNumber()]);
    }
    if (auto reshard = dyn_cast<dist::ReshardOp>(op))
      return valueOf(reshard.getOperand());
    if (auto transfer = dyn_cast<dist::TransferOp>(op)) {
      auto role = transfer->getParentOfType<dist::RoleOp>();
      auto source =
          sent.find({transfer.getPeer(), role.getStage(), transfer.getValue()});
      if (source != sent.end())
        return valueOf(source->second);
      fail(fmt::format("value {} arrives from a stage that does not send it",
                       transfer.getValue()));
      return None;
    }
    if (auto leaf = dyn_cast<dist::GlobalLeafOp>(op))
      return static_cast<ValueId>(leaf.getValue());
    if (auto finish = dyn_cast<dist::FinishOp>(op))
      return static_cast<ValueId>(finish.getValue());
    return resultOf(cast<dist::OpOp>(op), tensor.getResultNumber());
  }

  /// Results that are undefined have no tensor.
  ValueId resultOf(dist::OpOp step, size_t number) {
    if (step.getOp() < graph.ops.size())
      for (ValueId value : graph.ops[step.getOp()].results)
        if (value != None && number-- == 0)
          return value;
    fail(fmt::format("step of op {} makes more than the op", step.getOp()));
    return None;
  }

  const Graph &graph;
  Graph result;
  std::string mistake;
  /// By sender, receiver and value.
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, mlir::Value> sent;
  llvm::DenseMap<mlir::Value, ValueId> known;
};

} // namespace

Expected<Graph> globalGraph(ModuleOp module, const Graph &graph) {
  auto programs = module.getOps<dist::ProgramOp>();
  if (!llvm::hasSingleElement(programs))
    return malformed("the module does not hold exactly one dist.program");
  return GlobalReader(graph).read(*programs.begin());
}

} // namespace monarch
