//===- AtenAttrs.td - the dialect and its attributes -----------------------===//
//
// Dialects that lower aten include this file alone: no ops come with it.
// Literals of a call are builtin attributes; those that point at operands or
// at sizes of results are defined here, and so are the facts about a leaf.
//
//===----------------------------------------------------------------------===//
#ifndef MONARCH_DIALECTS_ATEN_ATENATTRS
#define MONARCH_DIALECTS_ATEN_ATENATTRS

include "mlir/IR/DialectBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/TensorEncoding.td"

def Aten_Dialect : Dialect {
  let name = "aten";
  let summary = "Joint graphs of PyTorch models";
  let description = [{
    A module holds one `aten.graph`. The order of definitions numbers the values
    and calls of the graph in `core`: conversion to and from it loses nothing.
  }];
  let cppNamespace = "::monarch::aten";
  let useDefaultAttributePrinterParser = 1;
}

class Aten_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<Aten_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

def Aten_OperandAttr : Aten_Attr<"Operand", "operand"> {
  let summary = "Argument: the operand at this index";
  let parameters = (ins "int32_t":$index);
  let assemblyFormat = "`<` $index `>`";
}

def Aten_OperandsAttr : Aten_Attr<"Operands", "operands"> {
  let summary = "Argument: a list of operands, -1 for an absent element";
  let parameters = (ins OptionalArrayRefParameter<"int32_t">:$indices);
  let assemblyFormat = "`<` `[` (`]`) : ($indices^ `]`)? `>`";
}

def Aten_SizesOfAttr : Aten_Attr<"SizesOf", "sizes_of"> {
  let summary = "Argument: every size of a result";
  let parameters = (ins "int32_t":$result);
  let assemblyFormat = "`<` $result `>`";
}

def Aten_SizeOfAttr : Aten_Attr<"SizeOf", "size_of"> {
  let summary = "Argument: one size of a result";
  let parameters = (ins "int32_t":$result, "int32_t":$dim);
  let assemblyFormat = "`<` $result `,` $dim `>`";
}

def Aten_SizesAlongAttr : Aten_Attr<"SizesAlong", "sizes_along"> {
  let summary = "Argument: the sizes of all results along one dim";
  let parameters = (ins "int32_t":$dim);
  let assemblyFormat = "`<` $dim `>`";
}

def Aten_BatchAttr
    : Aten_Attr<"Batch", "batch",
                [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let summary = "Encoding of a tensor: which sizes are multiples of the unit's rows";
  let description = [{
    One number per dim: the size divided by the rows of the unit, 0 where the
    size does not depend on them. Tensors that depend on them nowhere have no
    encoding.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$factors);
  let assemblyFormat = "`<` `[` $factors `]` `>`";
}

def Aten_StorageAttr : Aten_Attr<"Storage", "storage"> {
  let summary = "Where the bytes of a leaf lie in the model file";
  let parameters = (ins StringRefParameter<>:$record, "int64_t":$offsetBytes,
                        OptionalArrayRefParameter<"int64_t">:$strides);
  let assemblyFormat =
      "`<` $record `,` $offsetBytes `,` `[` (`]`) : ($strides^ `]`)? `>`";
}

#endif // MONARCH_DIALECTS_ATEN_ATENATTRS
