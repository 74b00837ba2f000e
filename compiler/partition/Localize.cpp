//===- Localize.cpp - pass localize ---------------------------------------===//
//
// Walks backwards: when a step goes, whatever read its global tensors has gone
// before.
//
//===----------------------------------------------------------------------===//
#include "compiler/partition/Passes.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace monarch {

#define GEN_PASS_DEF_LOCALIZE
#include "compiler/partition/Passes.h.inc"

namespace {

struct Localize : impl::LocalizeBase<Localize> {
  void runOnOperation() override {
    for (auto role : getOperation().getBody().getOps<dist::RoleOp>())
      for (Operation &op :
           llvm::make_early_inc_range(llvm::reverse(role.getBody().front()))) {
        if (auto segment = dyn_cast<dist::SegmentOp>(op))
          localize(segment);
        else if (isa<dist::GlobalLeafOp>(op))
          op.erase();
      }
  }

  static void localize(dist::SegmentOp segment) {
    Block &body = segment.getBody().front();
    cast<dist::YieldOp>(body.getTerminator()).getGlobalsMutable().clear();
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
      llvm::TypeSwitch<Operation *>(&op)
          .Case<dist::OpOp, dist::ReshardOp, dist::TransferOp, dist::FinishOp>(
              [](auto step) { unwrap(step); });
    if (segment.getGlobals().empty())
      return;
    OpBuilder builder(segment);
    auto local = dist::SegmentOp::create(builder, segment.getLoc(), TypeRange(),
                                         segment.getLocals().getTypes(),
                                         segment.getKindAttr());
    local.getBody().takeBody(segment.getBody());
    for (auto [before, after] :
         llvm::zip_equal(segment.getLocals(), local.getLocals()))
      before.replaceAllUsesWith(after);
    segment.erase();
  }

  template <typename StepT> static void unwrap(StepT step) {
    Block &body = step.getBody().front();
    auto yield = cast<dist::YieldOp>(body.getTerminator());
    for (auto [outer, inner] :
         llvm::zip_equal(step.getLocals(), yield.getLocals()))
      outer.replaceAllUsesWith(inner);
    yield.erase();
    step->getBlock()->getOperations().splice(step->getIterator(),
                                             body.getOperations());
    step.erase();
  }
};

} // namespace

} // namespace monarch
