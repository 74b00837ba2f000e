//===- DistAttrs.td - attributes of dist ----------------------------------===//
//
// Each holds one plain struct of `core`, so that the algebra there applies to
// it as it stands, and has a text form of its own.
//
//===----------------------------------------------------------------------===//
#ifndef MONARCH_DIALECTS_DIST_DISTATTRS
#define MONARCH_DIALECTS_DIST_DISTATTRS

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/TensorEncoding.td"

class Dist_Attr<string name, string attrMnemonic, string coreType,
                list<Trait> traits = []> : AttrDef<Dist_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
  let parameters = (ins AttrParameter<coreType, "", "const " # coreType # " &">
                        :$value);
  let hasCustomAssemblyFormat = 1;
}

def Dist_MeshAttr : Dist_Attr<"Mesh", "mesh", "::monarch::Mesh"> {
  let summary = "Axes of one stage: `<data \"d\" 2, tensor \"t\" 3>`";
}

def Dist_LayoutAttr
    : Dist_Attr<"Layout", "layout", "::monarch::Layout",
                [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let summary = "How a global tensor lies on the mesh: its encoding";
  let description = [{
    One state per mesh axis: `R` replicated, `P` partial sum, `S(dim:factors)`
    split along a dim, with the factor that is cut in each of its sections.
    `order` follows where axes do not cut in the order of the mesh.

    `tensor<8x24xf32, #dist.layout<R, S(1:0,0,0)>>`
  }];
}

def Dist_ExprAttr : Dist_Attr<"Expr", "expr", "::monarch::Expr"> {
  let summary = "An integer that depends on the rank: `<\"4*s3+2\">`";
  let description = [{
    `s3` is the size of shard 3 of the role's table at this rank, `s3@1:0` at
    coordinate 0 of axis 1. Integers that do not depend on it are builtin.
  }];
}

def Dist_SizesAttr
    : Dist_Attr<"Sizes", "sizes", "::std::vector<::monarch::Expr>",
                [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let summary = "A list of integers: `<\"s3\", \"4\">`";
  let description = [{
    As encoding of a local tensor it gives all sizes of its type; those that
    depend on the rank are `?` there.
  }];
}

def Dist_DimAttr : Dist_Attr<"Dim", "dim", "::monarch::DimStructure"> {
  let summary = "Structure of a dim: `<24>`, or `<24 = 0 to 12 [3, 4], 12 to 24 [12]>`";
}

def Dist_ShardAttr : Dist_Attr<"Shard", "shard", "::monarch::Shard"> {
  let summary = "A dim as a layout cuts it: `<24 by 1 [0], 0 [0]>`";
  let description = [{
    The structure, then the axes that cut it, outermost first, with the factor
    of each section.
  }];
}

def Dist_TableAttr
    : Dist_Attr<"Table", "table", "::monarch::dist::OffsetTable"> {
  let summary = "Where blocks begin: `<10 in 3 at [0, 2, 7, 10]>`";
}

def Dist_SlotAttr : Dist_Attr<"Slot", "slot", "::monarch::Slot"> {
  let summary = "A run of a segment on a unit: `<forward 0>`, `<step>`";
}

def Dist_ValueAttr : Dist_Attr<"Value", "value", "::monarch::dist::ValueInfo"> {
  let summary = "The role's value that an SSA value is: `<12 saved \"h\" of 3>`";
  let description = [{
    Its number in the role's table; its lifetime unless local; its name; the
    value whose storage it shares.
  }];
}

#endif // MONARCH_DIALECTS_DIST_DISTATTRS
