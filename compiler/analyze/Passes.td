//===- Passes.td - passes over aten ---------------------------------------===//
#ifndef MONARCH_COMPILER_ANALYZE_PASSES
#define MONARCH_COMPILER_ANALYZE_PASSES

include "mlir/Pass/PassBase.td"

def VerifyJoint : Pass<"verify-joint", "::mlir::ModuleOp"> {
  let summary = "Proves that a module holds one sound joint graph";
  let description = [{
    The border between import and everything after it. Beyond what each op
    verifies by itself: forward calls stand before backward ones, and the graph
    read from the module meets the invariants of `core/graph` (operands before
    uses, sizes that follow the unit's rows, types of gradients, a scalar loss).
    Changes nothing.

    ```mlir
    %g = aten.call backward "aten::add.Tensor"(%a, %b) ...
    %y = aten.call "aten::relu"(%x) ...  // error: is forward but follows ...
    ```
  }];
  let dependentDialects = ["::monarch::aten::AtenDialect"];
}

def DropDeadCalls : Pass<"drop-dead-calls", "::monarch::aten::GraphOp"> {
  let summary = "Drops calls that no root needs";
  let description = [{
    Roots are the loss, the outputs, gradients of parameters, updates of buffers
    and targets of counts. A live backward call keeps its forward call, whose
    decisions it inherits. Pairs of values and cotangents keep nothing alive;
    they lose what is dropped.

    Before:
    ```mlir
    %y = aten.call "aten::relu"(%x) [operand 0] : ...
    %z = aten.call "aten::neg"(%x) [operand 0] : ...
    aten.return outputs %y : tensor<4xf32>
    ```
    After:
    ```mlir
    %y = aten.call "aten::relu"(%x) [operand 0] : ...
    aten.return outputs %y : tensor<4xf32>
    ```
  }];
  let statistics = [Statistic<"dropped", "num-dropped", "Calls dropped">];
}

#endif // MONARCH_COMPILER_ANALYZE_PASSES
