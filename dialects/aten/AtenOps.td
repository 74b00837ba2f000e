//===- AtenOps.td - the joint graph of one unit ---------------------------===//
//
// Forward and backward of a model on one device, for one unit of rows. ATen ops
// are calls keyed by their schema name; the rest of the graph (leaves, pairs of
// values and cotangents, gradient uses, means of the loss) are ops of their
// own. Weights are named, never held.
//
//===----------------------------------------------------------------------===//
#ifndef MONARCH_DIALECTS_ATEN_ATENOPS
#define MONARCH_DIALECTS_ATEN_ATENOPS

include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

include "dialects/aten/AtenAttrs.td"

class Aten_Op<string mnemonic, list<Trait> traits = []>
    : Op<Aten_Dialect, mnemonic, traits>;

def Aten_Tensor : AnyTypeOf<[AnyRankedTensor]>;
def Aten_Result : AnyTypeOf<[AnyRankedTensor, NoneType],
                            "a ranked tensor, or none where undefined">;

//===- The graph ----------------------------------------------------------===//

def Aten_GraphOp : Aten_Op<"graph", [
    IsolatedFromAbove, SingleBlockImplicitTerminator<"ReturnOp">]> {
  let summary = "The joint graph of one unit";
  let description = [{
    `rows` is the row count of the unit that the shapes describe. `dynamic`: the
    unit may be scaled. `inseparable`: the loss is not sum/count over the rows.

    ```mlir
    aten.graph rows 4 dynamic {
      %x = aten.input "x" : tensor<4x8xf32, #aten.batch<[1, 0]>>
      ...
      aten.return loss %loss : tensor<f32>
    }
    ```
  }];
  let arguments = (ins I64Attr:$rows, UnitAttr:$dynamic, UnitAttr:$inseparable);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    `rows` $rows (`dynamic` $dynamic^)? (`inseparable` $inseparable^)?
    attr-dict-with-keyword $body
  }];
  let hasRegionVerifier = 1;
}

def Aten_ReturnOp : Aten_Op<"return", [Terminator, AttrSizedOperandSegments,
                                       HasParent<"GraphOp">]> {
  let summary = "The loss and the outputs of the model";
  let arguments = (ins Optional<Aten_Tensor>:$loss,
                       Variadic<Aten_Tensor>:$outputs);
  let builders = [OpBuilder<(ins),
      [{ build($_builder, $_state, ::mlir::Value(), ::mlir::ValueRange()); }]>];
  let assemblyFormat = [{
    (`loss` $loss^ `:` type($loss))?
    (`outputs` $outputs^ `:` type($outputs))? attr-dict
  }];
  let hasVerifier = 1;
}

//===- Leaves -------------------------------------------------------------===//

class Aten_LeafOp<string mnemonic, dag attributes>
    : Aten_Op<mnemonic, [HasParent<"GraphOp">]> {
  let arguments = attributes;
  let results = (outs Aten_Tensor:$value);
}

def Aten_ParameterOp
    : Aten_LeafOp<"parameter", (ins StrArrayAttr:$names, UnitAttr:$frozen,
                                    Aten_StorageAttr:$storage)> {
  let summary = "A parameter: all its names in the file (ties), the first names it";
  let assemblyFormat =
      "$names (`frozen` $frozen^)? $storage attr-dict `:` type($value)";
  let hasVerifier = 1;
}

def Aten_BufferOp
    : Aten_LeafOp<"buffer", (ins StrArrayAttr:$names, UnitAttr:$temporary,
                                 Aten_StorageAttr:$storage)> {
  let summary = "A buffer; temporary ones are not saved with the weights";
  let assemblyFormat =
      "$names (`temporary` $temporary^)? $storage attr-dict `:` type($value)";
  let hasVerifier = 1;
}

def Aten_InputOp : Aten_LeafOp<"input", (ins StrAttr:$symbol)> {
  let summary = "A model input, by its name in the file's signature";
  let assemblyFormat = "$symbol attr-dict `:` type($value)";
}

def Aten_ConstantOp : Aten_LeafOp<"constant", (ins StrAttr:$symbol,
                                                   Aten_StorageAttr:$storage)> {
  let summary = "A tensor that the model file holds";
  let assemblyFormat = "$symbol $storage attr-dict `:` type($value)";
}

def Aten_RandomOp : Aten_LeafOp<"random", (ins StrAttr:$symbol)> {
  let summary = "Seed, step and unit: the only source of randomness";
  let assemblyFormat = "$symbol attr-dict `:` type($value)";
}

def Aten_InverseCountOp : Aten_LeafOp<"inverse_count", (ins StrAttr:$symbol)> {
  let summary = "1 / what one mean of the loss counts over the global batch";
  let assemblyFormat = "$symbol attr-dict `:` type($value)";
}

def Aten_SeedOp : Aten_LeafOp<"seed", (ins StrAttr:$symbol)> {
  let summary = "The gradient that the loss starts from: always 1";
  let assemblyFormat = "$symbol attr-dict `:` type($value)";
}

//===- Calls --------------------------------------------------------------===//

def Aten_CallOp : Aten_Op<"call", [HasParent<"GraphOp">]> {
  let summary = "An ATen op, or one of monarch's abstract ops";
  let description = [{
    `callee` is the schema name with its overload. `arguments` has one entry per
    argument of the schema, defaults filled in. A result of type `none` is
    undefined (a gradient that nobody needs).

    A forward call that backward calls refer to has a number, its `node`; they
    name it by `backward of`. `backward` alone: a sum of cotangents, which
    stands between nodes.

    ```mlir
    %y = aten.call node 7 "aten::mm"(%x, %w) [operand 0, operand 1] : ...
    %g = aten.call backward of 7 "aten::mm"(%gy, %wt) [operand 0, operand 1] : ...
    ```
  }];
  let arguments = (ins Variadic<Aten_Tensor>:$operands, StrAttr:$callee,
                       ArrayAttr:$arguments, OptionalAttr<I64Attr>:$node,
                       UnitAttr:$backward, OptionalAttr<I64Attr>:$forwardNode);
  let results = (outs Variadic<Aten_Result>:$results);
  let assemblyFormat = [{
    (`node` $node^)? (`backward` $backward^)? (`of` $forwardNode^)?
    $callee `(` $operands `)` custom<Arguments>($arguments) attr-dict
    `:` functional-type($operands, $results)
  }];
  let hasVerifier = 1;
}

//===- Facts about values -------------------------------------------------===//

def Aten_CotangentOp : Aten_Op<"cotangent", [HasParent<"GraphOp">]> {
  let summary = "The gradient is the cotangent of these values";
  let arguments = (ins Aten_Tensor:$gradient, Variadic<Aten_Tensor>:$values);
  let assemblyFormat = [{
    $gradient `of` $values attr-dict `:` type($gradient) `,` type($values)
  }];
  let hasVerifier = 1;
}

def Aten_GradientsOp : Aten_Op<"gradients", [HasParent<"GraphOp">]> {
  let summary = "One gradient for each use of a parameter";
  let description = [{
    Each accumulates where it is; their sum is taken once, in the step.
  }];
  let arguments = (ins Aten_Tensor:$parameter, Variadic<Aten_Tensor>:$uses);
  let assemblyFormat = [{
    $parameter `are` $uses attr-dict `:` type($parameter) `,` type($uses)
  }];
  let hasVerifier = 1;
}

def Aten_UpdateOp : Aten_Op<"update", [HasParent<"GraphOp">]> {
  let summary = "The value of a buffer after the unit";
  let arguments = (ins Aten_Tensor:$buffer, Aten_Tensor:$updated);
  let assemblyFormat = [{
    $buffer `with` $updated attr-dict `:` type($buffer) `,` type($updated)
  }];
  let hasVerifier = 1;
}

def Aten_CountOp : Aten_Op<"count", [HasParent<"GraphOp">]> {
  let summary = "What one mean of the loss counts";
  let description = [{
    With a target its elements that differ from `ignoreIndex`, else `perUnit`
    elements in each unit.
  }];
  let arguments = (ins Aten_Tensor:$inverseCount,
                       Optional<Aten_Tensor>:$target, I64Attr:$ignoreIndex,
                       I64Attr:$perUnit);
  let assemblyFormat = [{
    $inverseCount (`target` $target^ `:` type($target))?
    `ignoring` $ignoreIndex `per_unit` $perUnit attr-dict
    `:` type($inverseCount)
  }];
  let hasVerifier = 1;
}

#endif // MONARCH_DIALECTS_ATEN_ATENOPS
