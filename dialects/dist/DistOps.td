//===- DistOps.td - programs of ranks, global and local -------------------===//
//
// One role per stage; in it leaves, then segments. Two forms:
//
//   global: a segment is a list of steps on global tensors, whose layout is the
//           encoding of their type. The region of a step holds its local
//           expansion.
//   local:  (after `localize`) a segment is a list of instructions on local
//           tensors: what the program file holds.
//
//===----------------------------------------------------------------------===//
#ifndef MONARCH_DIALECTS_DIST_DISTOPS
#define MONARCH_DIALECTS_DIST_DISTOPS

include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Dist_Dialect : Dialect {
  let name = "dist";
  let summary = "A training step over the ranks of a mesh";
  let description = [{
    Written by `partition` from a resolved plan, read by `emit`. Nothing in it
    decides: no op is `Pure`, no pass creates, drops or merges a collective.
  }];
  let cppNamespace = "::monarch::dist";
  let dependentDialects = ["::monarch::aten::AtenDialect"];
  let useDefaultAttributePrinterParser = 1;
}

include "dialects/aten/AtenAttrs.td"
include "dialects/dist/DistAttrs.td"

class Dist_Op<string mnemonic, list<Trait> traits = []>
    : Op<Dist_Dialect, mnemonic, traits>;

def Dist_GlobalTensor : Type<
    CPred<"::monarch::dist::isGlobal($_self)">,
    "a global tensor (its encoding is a layout)">;
def Dist_LocalTensor : Type<
    CPred<"::monarch::dist::isLocal($_self)">,
    "a local tensor (its encoding is no layout)">;
def Dist_LocalResult : AnyTypeOf<[Dist_LocalTensor, NoneType],
                                 "a local tensor, or none where dropped">;

//===- Structure ----------------------------------------------------------===//

def Dist_ProgramOp : Dist_Op<"program", [
    IsolatedFromAbove, SymbolTable, SingleBlock, NoTerminator]> {
  let summary = "The roles of a training step, and what they share";
  let arguments = (ins StrAttr:$model, StrAttr:$plan, Dist_MeshAttr:$mesh,
                       TypedArrayAttrBase<Dist_TableAttr, "tables">:$tables,
                       StrAttr:$optimizer, I64Attr:$globalRows,
                       I64Attr:$unitRows, I64Attr:$unitsPerReplica,
                       DictionaryAttr:$bytes, DictionaryAttr:$collectives,
                       I64Attr:$peakBytes);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    `model` $model `plan` $plan `mesh` $mesh `tables` $tables
    `optimizer` $optimizer `rows` $globalRows `in` `units` `of` $unitRows `,`
    $unitsPerReplica `each` `predicts` `bytes` $bytes `collectives` $collectives
    `peak` $peakBytes attr-dict-with-keyword $body
  }];
  let hasRegionVerifier = 1;
}

def Dist_RoleOp : Dist_Op<"role", [
    IsolatedFromAbove, Symbol, HasParent<"ProgramOp">,
    SingleBlockImplicitTerminator<"RootsOp">]> {
  let summary = "What the ranks of one stage run";
  let description = [{
    Declarations of leaves, then segments, then `dist.roots`. `shards` is the
    table that size expressions refer to; `schedule` says which segment runs on
    which unit, in order.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I32Attr:$stage,
                       TypedArrayAttrBase<Dist_ShardAttr, "shards">:$shards,
                       TypedArrayAttrBase<Dist_SlotAttr, "slots">:$schedule);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `stage` $stage `shards` $shards `schedule` $schedule
    attr-dict-with-keyword $body
  }];
}

def Dist_RootsOp : Dist_Op<"roots", [Terminator, AttrSizedOperandSegments,
                                     HasParent<"RoleOp">]> {
  let summary = "Values of the role that the runtime itself fills or reads";
  let description = [{
    `zeroed`: start each step as zeros. The others are scalars: see
    `ProgramScalars` in `core/program`.
  }];
  let arguments = (ins Variadic<Dist_LocalTensor>:$zeroed,
                       Optional<Dist_LocalTensor>:$random,
                       Optional<Dist_LocalTensor>:$loss,
                       Optional<Dist_LocalTensor>:$squaredNorm,
                       Optional<Dist_LocalTensor>:$seed);
  let builders = [OpBuilder<(ins), [{
    build($_builder, $_state, ::mlir::ValueRange(), ::mlir::Value(),
          ::mlir::Value(), ::mlir::Value(), ::mlir::Value());
  }]>];
  let assemblyFormat = [{
    (`zeroed` $zeroed^ `:` type($zeroed))? (`random` $random^ `:` type($random))?
    (`loss` $loss^ `:` type($loss))?
    (`squared_norm` $squaredNorm^ `:` type($squaredNorm))?
    (`seed` $seed^ `:` type($seed))? attr-dict
  }];
}

def Dist_SegmentOp : Dist_Op<"segment", [
    HasParent<"RoleOp">, SingleBlockImplicitTerminator<"YieldOp">,
    AttrSizedResultSegments]> {
  let summary = "Instructions that run as one, once per slot of the schedule";
  let description = [{
    `kind` is count, begin, forward, backward or step. Results are the values
    that later segments read.
  }];
  let arguments = (ins StrAttr:$kind);
  let results = (outs Variadic<Dist_GlobalTensor>:$globals,
                      Variadic<Dist_LocalTensor>:$locals);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $kind (`globals` type($globals)^)? (`locals` type($locals)^)?
    attr-dict-with-keyword $body
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Dist_YieldOp : Dist_Op<"yield", [Terminator, AttrSizedOperandSegments]> {
  let summary = "Values that leave a step or a segment";
  let arguments = (ins Variadic<Dist_GlobalTensor>:$globals,
                       Variadic<Dist_LocalTensor>:$locals);
  let builders = [OpBuilder<(ins), [{
    build($_builder, $_state, ::mlir::ValueRange(), ::mlir::ValueRange());
  }]>];
  let assemblyFormat = [{
    (`globals` $globals^ `:` type($globals))?
    (`locals` $locals^ `:` type($locals))? attr-dict
  }];
}

//===- Leaves of a role ---------------------------------------------------===//

class Dist_LeafOp<string mnemonic, dag attributes>
    : Dist_Op<mnemonic, [HasParent<"RoleOp">]> {
  let arguments = !con((ins Dist_ValueAttr:$value), attributes);
  let results = (outs Dist_LocalTensor:$local);
}

def Dist_DimArray : TypedArrayAttrBase<Dist_DimAttr, "structure of a tensor">;

def Dist_ParameterOp
    : Dist_LeafOp<"parameter", (ins StrArrayAttr:$names,
                                    Aten_StorageAttr:$storage,
                                    Dist_DimArray:$structure,
                                    Dist_LayoutAttr:$layout, UnitAttr:$frozen,
                                    UnitAttr:$copy)> {
  let summary = "A parameter at rest; `copy`: another stage owns it";
  let assemblyFormat = [{
    $value $names $storage `structure` $structure `layout` $layout
    (`frozen` $frozen^)? (`copy` $copy^)? attr-dict `:` type($local)
  }];
}

def Dist_BufferOp
    : Dist_LeafOp<"buffer", (ins StrArrayAttr:$names, Aten_StorageAttr:$storage,
                                 Dist_DimArray:$structure, UnitAttr:$constant)> {
  let summary = "A buffer, or a constant of the file";
  let assemblyFormat = [{
    $value $names $storage `structure` $structure (`constant` $constant^)?
    attr-dict `:` type($local)
  }];
}

def Dist_InputOp
    : Dist_LeafOp<"input", (ins StrAttr:$symbol, Dist_DimArray:$structure,
                                Dist_LayoutAttr:$layout, I32Attr:$rowDim,
                                I64Attr:$bound)> {
  let summary = "The slice of a model input that this rank reads";
  let assemblyFormat = [{
    $value $symbol `structure` $structure `layout` $layout `rows` $rowDim
    `bound` $bound attr-dict `:` type($local)
  }];
}

def Dist_IndexOp : Dist_LeafOp<"index", (ins Dist_SizesAttr:$of,
                                             Dist_SizesAttr:$in)> {
  let summary = "Positions of the indices of shards in other shards";
  let assemblyFormat = "$value `of` $of `in` $in attr-dict `:` type($local)";
  let hasVerifier = 1;
}

def Dist_StateOp : Dist_LeafOp<"state", (ins)> {
  let summary = "A value that no instruction makes: accumulators, scalars";
  let assemblyFormat = "$value attr-dict `:` type($local)";
}

def Dist_GradientOp : Dist_Op<"gradient", [HasParent<"RoleOp">]> {
  let summary = "The gradient of a parameter at rest, after the step's sums";
  let description = [{
    `master`: a float32 copy of a bfloat16 or float16 parameter; the optimizer
    updates it by the gradient, in float32, and the parameter follows it.
  }];
  let arguments = (ins Dist_LocalTensor:$parameter, Dist_LocalTensor:$gradient,
                       Optional<Dist_LocalTensor>:$master);
  let assemblyFormat = [{
    $gradient `of` $parameter (`master` $master^ `:` type($master))?
    attr-dict `:` type($gradient) `,` type($parameter)
  }];
  let hasVerifier = 1;
}

include "dialects/dist/DistSteps.td"
include "dialects/dist/DistInstructions.td"

#endif // MONARCH_DIALECTS_DIST_DISTOPS
