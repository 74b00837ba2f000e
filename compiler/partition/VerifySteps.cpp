//===- VerifySteps.cpp - pass verify-steps --------------------------------===//
//
// A global tensor is *carried* by the local tensors that its step hands on, or,
// where a step hands on none (it passes its operand through), by those that
// carry its operands.
//
//===----------------------------------------------------------------------===//
#include "compiler/partition/Passes.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace monarch {

#define GEN_PASS_DEF_VERIFYSTEPS
#include "compiler/partition/Passes.h.inc"

namespace {

struct VerifySteps : impl::VerifyStepsBase<VerifySteps> {
  void runOnOperation() override {
    WalkResult result = getOperation().walk([&](Operation *op) {
      // Finishes read accumulators, too, which belong to no value of the graph.
      if (isa<dist::OpOp, dist::ReshardOp>(op) ||
          (isa<dist::TransferOp>(op) && op->getNumOperands() != 0))
        if (failed(check(op)))
          return WalkResult::interrupt();
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
    markAllAnalysesPreserved();
  }

  LogicalResult check(Operation *step) {
    llvm::DenseSet<mlir::Value> carried;
    for (mlir::Value operand : step->getOperands())
      addCarriers(operand, carried);
    LogicalResult result = success();
    step->getRegion(0).walk([&](Operation *instruction) {
      for (mlir::Value read : instruction->getOperands()) {
        if (step->isAncestor(read.getDefiningOp()))
          continue;
        const mlir::Value source = sourceOf(read);
        const bool isLeaf =
            isa<dist::RoleOp>(source.getDefiningOp()->getParentOp());
        // Frees drop what was read before, by this step or another.
        if (!isLeaf && !carried.contains(source) &&
            !isa<dist::FreeOp>(instruction))
          result = instruction->emitOpError(
              "reads a tensor that carries no operand of its step");
      }
    });
    return result;
  }

  /// The result of a step, for the result of a segment that yields it.
  static mlir::Value sourceOf(mlir::Value value) {
    while (auto segment = value.getDefiningOp<dist::SegmentOp>()) {
      auto yield = cast<dist::YieldOp>(segment.getBody().front().back());
      value = yield->getOperand(cast<OpResult>(value).getResultNumber());
    }
    return value;
  }

  static void addCarriers(mlir::Value global,
                          llvm::DenseSet<mlir::Value> &carried) {
    Operation *maker = sourceOf(global).getDefiningOp();
    bool handsOn = false;
    for (OpResult result : maker->getResults())
      if (dist::isLocal(result.getType())) {
        carried.insert(result);
        handsOn = true;
      }
    if (!handsOn)
      for (mlir::Value operand : maker->getOperands())
        addCarriers(operand, carried);
  }
};

} // namespace

} // namespace monarch
