//===- Passes.td - passes over dist ---------------------------------------===//
#ifndef MONARCH_COMPILER_PARTITION_PASSES
#define MONARCH_COMPILER_PARTITION_PASSES

include "mlir/Pass/PassBase.td"

def Localize : Pass<"localize", "::monarch::dist::ProgramOp"> {
  let summary = "From the global form to the local one: unwraps steps";
  let description = [{
    The instructions in the regions of steps take their place, in order; what
    the steps say of global tensors goes. No instruction is made, moved or
    dropped.

    Before:
    ```mlir
    %y, %l = dist.op 3 "aten::mm"(%x, %w) [operand 0, operand 1] : ... {
      %0 = dist.call "aten::mm"(%a, %b) [operand 0, operand 1] as [...] : ...
      dist.yield locals %0 : tensor<8x3xf32>
    }
    dist.free %l : tensor<8x3xf32>
    ```
    After:
    ```mlir
    %0 = dist.call "aten::mm"(%a, %b) [operand 0, operand 1] as [...] : ...
    dist.free %0 : tensor<8x3xf32>
    ```
  }];
}

def VerifySteps : Pass<"verify-steps", "::monarch::dist::ProgramOp"> {
  let summary = "Proves that instructions read what their step says it reads";
  let description = [{
    In the global form each op, reshard and sent value names the global tensors
    that it reads; its instructions may read only local tensors that carry
    these, and leaves of the role. So the wiring of the global tensors is the
    wiring of the program. Changes nothing.

    ```mlir
    dist.reshard 2 %y : ... {
      %0 = dist.all_gather %x_local ...  // error: carries no operand of its step
    }
    ```
  }];
}

def VerifyPartitioned : Pass<"verify-partitioned", "::monarch::dist::ProgramOp"> {
  let summary = "Proves that a program is in local form and its parts match";
  let description = [{
    The border between partition and emit: no steps and no global tensors are
    left; values are numbered densely, each once in its role; and every send has
    exactly one receive of its tag, in the role that it names. Changes nothing.

    ```mlir
    dist.send %x peer 1 tag 7 : ...   // error: has no receive in role 1
    ```
  }];
}

#endif // MONARCH_COMPILER_PARTITION_PASSES
