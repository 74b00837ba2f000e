//===- DropDeadCalls.cpp - pass drop-dead-calls ---------------------------===//

#include "compiler/analyze/Passes.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace monarch {

#define GEN_PASS_DEF_DROPDEADCALLS
#include "compiler/analyze/Passes.h.inc"

namespace {

struct DropDeadCalls : impl::DropDeadCallsBase<DropDeadCalls> {
  void runOnOperation() override {
    Block &body = getOperation().getBody().front();
    llvm::DenseMap<int64_t, Operation *> nodes;
    for (auto call : body.getOps<aten::CallOp>())
      if (call.getNode())
        nodes[*call.getNode()] = call;

    llvm::DenseSet<Operation *> live;
    SmallVector<Operation *> pending;
    auto keep = [&](Operation *op) {
      if (isa_and_nonnull<aten::CallOp>(op) && live.insert(op).second)
        pending.push_back(op);
    };
    for (Operation &op : body)
      if (!isa<aten::CallOp, aten::CotangentOp>(op))
        for (mlir::Value operand : op.getOperands())
          keep(operand.getDefiningOp());
    while (!pending.empty()) {
      auto call = cast<aten::CallOp>(pending.pop_back_val());
      for (mlir::Value operand : call.getOperands())
        keep(operand.getDefiningOp());
      if (call.getForwardNode())
        keep(nodes.lookup(*call.getForwardNode()));
    }

    auto isDead = [&](mlir::Value value) {
      Operation *op = value.getDefiningOp();
      return isa<aten::CallOp>(op) && !live.contains(op);
    };
    for (auto pair :
         llvm::make_early_inc_range(body.getOps<aten::CotangentOp>())) {
      SmallVector<mlir::Value> values = llvm::filter_to_vector(
          pair.getValues(), [&](mlir::Value v) { return !isDead(v); });
      if (values.empty() || isDead(pair.getGradient()))
        pair.erase();
      else
        pair.getValuesMutable().assign(values);
    }
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
      if (isa<aten::CallOp>(op) && !live.contains(&op)) {
        op.erase();
        ++dropped;
      }
  }
};

} // namespace

} // namespace monarch
