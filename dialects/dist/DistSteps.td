//===- DistSteps.td - steps of the global form ----------------------------===//
//
// What a group of instructions means for the global graph. `globals` are the
// graph's tensors under their layouts, `locals` what later steps read of the
// region.
//
//===----------------------------------------------------------------------===//
#ifndef MONARCH_DIALECTS_DIST_DISTSTEPS
#define MONARCH_DIALECTS_DIST_DISTSTEPS

class Dist_StepOp<string mnemonic, dag attributes, list<Trait> traits = []>
    : Dist_Op<mnemonic, !listconcat(traits, [
          HasParent<"SegmentOp">, SingleBlockImplicitTerminator<"YieldOp">,
          AttrSizedResultSegments])> {
  let arguments = attributes;
  let results = (outs Variadic<Dist_GlobalTensor>:$globals,
                      Variadic<Dist_LocalTensor>:$locals);
  let regions = (region SizedRegion<1>:$body);
  let hasRegionVerifier = 1;
}

def Dist_GlobalLeafOp : Dist_Op<"leaf", [HasParent<"RoleOp">]> {
  let summary = "A value of the graph that no step here makes";
  let description = [{
    A parameter, input, ... as the role reads it, under a layout.
  }];
  let arguments = (ins I32Attr:$value);
  let results = (outs Dist_GlobalTensor:$global);
  let assemblyFormat = "$value attr-dict-with-keyword `:` type($global)";
}

def Dist_OpOp : Dist_StepOp<"op", (ins Variadic<Dist_GlobalTensor>:$operands,
                                       StrAttr:$callee, ArrayAttr:$arguments,
                                       I32Attr:$op)> {
  let summary = "An op of the graph under one layout of each tensor";
  let description = [{
    `op` is its number in the graph; `arguments` are those of `aten.call`. The
    graph's results stand in `globals`, without those that are undefined.

    ```mlir
    %y, %y_local = dist.op 12 "aten::mm"(%x, %w) [operand 0, operand 1]
        : tensor<8x8xf32, #dist.layout<R>>, tensor<8x6xf32, #dist.layout<S(1:0)>>
        -> tensor<8x6xf32, #dist.layout<S(1:0)>> locals tensor<?x3xf32, ...> {
      %0 = dist.call "aten::mm"(%x_local, %w_local) ...
      dist.yield locals %0 : tensor<8x3xf32>
    }
    ```
  }];
  let assemblyFormat = [{
    $op $callee `(` $operands `)` custom<Arguments>($arguments) attr-dict-with-keyword
    (`:` type($operands)^)? (`->` type($globals)^)? (`locals` type($locals)^)?
    $body
  }];
}

def Dist_ReshardOp : Dist_StepOp<"reshard", (ins Dist_GlobalTensor:$operand,
                                                 I32Attr:$value)> {
  let summary = "The same value of the graph in another layout";
  let assemblyFormat = [{
    $value $operand attr-dict-with-keyword `:` type($operand) `->` type($globals)
    (`locals` type($locals)^)? $body
  }];
  let hasVerifier = 1;
}

def Dist_TransferOp
    : Dist_StepOp<"transfer", (ins Optional<Dist_GlobalTensor>:$operand,
                                   I32Attr:$value, I32Attr:$peer)> {
  let summary = "A value to or from another stage, in the same layout";
  let description = [{
    The sender has an operand, the receiver a result. What the step's end moves
    (gradients at rest, the norm, updated parameters) is no value of the graph:
    neither has one then.
  }];
  let assemblyFormat = [{
    $value `peer` $peer ($operand^ `:` type($operand))? attr-dict-with-keyword
    (`->` type($globals)^)? (`locals` type($locals)^)? $body
  }];
}

def Dist_FinishOp
    : Dist_StepOp<"finish", (ins Variadic<Dist_GlobalTensor>:$operands,
                                 I32Attr:$value)> {
  let summary = "What stands around the units";
  let description = [{
    Counts, sums of gradients, the norm, updates. `value` is the graph's value
    that it is about, -1 for none.
  }];
  let assemblyFormat = [{
    $value ($operands^ `:` type($operands))? attr-dict-with-keyword
    (`->` type($globals)^)? (`locals` type($locals)^)? $body
  }];
}

#endif // MONARCH_DIALECTS_DIST_DISTSTEPS
