//===- VerifyJoint.cpp - pass verify-joint --------------------------------===//

#include "compiler/analyze/AtenGraph.h"
#include "compiler/analyze/Passes.h"

using namespace mlir;

namespace monarch {

#define GEN_PASS_DEF_VERIFYJOINT
#include "compiler/analyze/Passes.h.inc"

namespace {

struct VerifyJoint : impl::VerifyJointBase<VerifyJoint> {
  void runOnOperation() override {
    bool isSound = true;
    for (auto graph : getOperation().getOps<aten::GraphOp>())
      isSound &= succeeded(checkOrder(graph));
    if (!isSound)
      return signalPassFailure();

    Expected<Graph> graph = graphOf(getOperation());
    std::optional<Error> error = graph ? verify(*graph) : graph.error();
    if (error) {
      getOperation().emitError(error->what);
      return signalPassFailure();
    }
    markAllAnalysesPreserved();
  }

  static LogicalResult checkOrder(aten::GraphOp graph) {
    LogicalResult result = success();
    bool seenBackward = false;
    for (auto call : graph.getBody().getOps<aten::CallOp>()) {
      if (seenBackward && !call.getBackward())
        result = call.emitOpError("is forward but follows a backward call");
      seenBackward |= call.getBackward();
    }
    return result;
  }
};

} // namespace

} // namespace monarch
