//===- DistInstructions.td - instructions on local tensors ----------------===//
//
// One for each kind of instruction in `core/program`, with the fields that it
// has there. `op` is the graph's op that an instruction belongs to.
//
//===----------------------------------------------------------------------===//
#ifndef MONARCH_DIALECTS_DIST_DISTINSTRUCTIONS
#define MONARCH_DIALECTS_DIST_DISTINSTRUCTIONS

class Dist_InstructionOp<string mnemonic, dag operands, dag resultList>
    : Dist_Op<mnemonic> {
  let arguments = !con(operands, (ins OptionalAttr<I32Attr>:$op));
  let results = resultList;
}

def Dist_CallOp
    : Dist_InstructionOp<"call", (ins Variadic<Dist_LocalTensor>:$operands,
                                      StrAttr:$callee, ArrayAttr:$arguments,
                                      ArrayAttr:$values),
                         (outs Variadic<Dist_LocalResult>:$results)> {
  let summary = "An op on local tensors; `none` results are dropped";
  let assemblyFormat = [{
    $callee `(` $operands `)` custom<Arguments>($arguments) `as` $values
    (`for` $op^)? attr-dict `:` functional-type($operands, $results)
  }];
  let hasVerifier = 1;
}

def Dist_AllReduceOp
    : Dist_InstructionOp<"all_reduce", (ins Dist_LocalTensor:$tensor,
                                            StrAttr:$reduction,
                                            DenseI32ArrayAttr:$axes), (outs)> {
  let summary = "In place, over the group that differs on these axes alone";
  let assemblyFormat = [{
    $reduction $tensor `axes` $axes (`for` $op^)? attr-dict `:` type($tensor)
  }];
  let hasVerifier = 1;
}

class Dist_ExchangeOp<string mnemonic, dag sizes>
    : Dist_InstructionOp<mnemonic,
                         !con((ins Dist_LocalTensor:$tensor,
                                   DenseI32ArrayAttr:$axes), sizes,
                              (ins Dist_ValueAttr:$value)),
                         (outs Dist_LocalTensor:$result)> {
  let hasVerifier = 1;
}

def Dist_AllGatherOp
    : Dist_ExchangeOp<"all_gather", (ins Dist_SizesAttr:$receive)> {
  let summary = "Own block to all blocks, in group order";
  let assemblyFormat = [{
    $tensor `axes` $axes `receive` $receive `as` $value (`for` $op^)? attr-dict
    `:` type($tensor) `->` type($result)
  }];
}

def Dist_ReduceScatterOp
    : Dist_ExchangeOp<"reduce_scatter", (ins StrAttr:$reduction,
                                             Dist_SizesAttr:$send)> {
  let summary = "Block i to member i; what arrives is added in group order";
  let assemblyFormat = [{
    $reduction $tensor `axes` $axes `send` $send `as` $value (`for` $op^)?
    attr-dict `:` type($tensor) `->` type($result)
  }];
}

def Dist_AllToAllOp
    : Dist_ExchangeOp<"all_to_all", (ins Dist_SizesAttr:$send,
                                         Dist_SizesAttr:$receive)> {
  let summary = "Block i to member i, and from it";
  let assemblyFormat = [{
    $tensor `axes` $axes `send` $send `receive` $receive `as` $value
    (`for` $op^)? attr-dict `:` type($tensor) `->` type($result)
  }];
}

def Dist_SendOp : Dist_InstructionOp<"send", (ins Dist_LocalTensor:$tensor,
                                                  I32Attr:$peer, I64Attr:$tag),
                                     (outs)> {
  let summary = "To the same coordinates in another stage";
  let assemblyFormat = [{
    $tensor `peer` $peer `tag` $tag (`for` $op^)? attr-dict `:` type($tensor)
  }];
}

def Dist_ReceiveOp : Dist_InstructionOp<"receive", (ins I32Attr:$peer,
                                                        I64Attr:$tag,
                                                        Dist_ValueAttr:$value),
                                        (outs Dist_LocalTensor:$result)> {
  let summary = "From the same coordinates in another stage";
  let assemblyFormat = [{
    `peer` $peer `tag` $tag `as` $value (`for` $op^)? attr-dict
    `:` type($result)
  }];
}

def Dist_ZeroOp : Dist_InstructionOp<"zero", (ins Dist_LocalTensor:$tensor,
                                                  DenseI32ArrayAttr:$axes,
                                                  Dist_ValueAttr:$value),
                                     (outs Dist_LocalTensor:$result)> {
  let summary = "The operand on coordinate 0 of the axis, zeros elsewhere";
  let assemblyFormat = [{
    $tensor `axes` $axes `as` $value (`for` $op^)? attr-dict
    `:` type($tensor) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Dist_UpdateOp : Dist_InstructionOp<"update", (ins Dist_LocalTensor:$parameter,
                                                      Dist_LocalTensor:$gradient,
                                                      StrAttr:$optimizer),
                                       (outs)> {
  let summary = "The optimizer's step on a parameter, in place";
  let assemblyFormat = [{
    $optimizer $parameter `by` $gradient (`for` $op^)? attr-dict
    `:` type($parameter) `,` type($gradient)
  }];
  let hasVerifier = 1;
}

def Dist_FreeOp : Dist_InstructionOp<"free",
                                     (ins Variadic<Dist_LocalTensor>:$tensors),
                                     (outs)> {
  let summary = "Drops tensors after their last use";
  let assemblyFormat = "$tensors (`for` $op^)? attr-dict `:` type($tensors)";
}

#endif // MONARCH_DIALECTS_DIST_DISTINSTRUCTIONS
