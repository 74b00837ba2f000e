//===- CheckScript.cpp - lists of what is allowed -------------------------===//
//
// prim is a list of what is allowed, aten of what is not: aten's ops are
// functions of tensors but for the few that are named here.
//
//===----------------------------------------------------------------------===//
#include "runtime/script/CheckScript.h"

#include <algorithm>
#include <string_view>

namespace monarch {

namespace {

constexpr std::string_view AllowedPrim[] = {
    "CallFunction",
    "CallMethod",
    "Constant",
    "CreateObject",
    "DictConstruct",
    "Enter",
    "EnumName",
    "EnumValue",
    "Exit",
    "GetAttr",
    "If",
    "ListConstruct",
    "ListUnpack",
    "Loop",
    "NumToTensor",
    "RaiseException",
    "SetAttr",
    "StringIndex",
    "TupleConstruct",
    "TupleIndex",
    "TupleSlice",
    "TupleUnpack",
    "Uninitialized",
    "abs",
    "data",
    "device",
    "dtype",
    "is_cpu",
    "is_cuda",
    "is_meta",
    "is_mkldnn",
    "is_nested",
    "is_quantized",
    "is_sparse",
    "is_sparse_csr",
    "isinstance",
    "itemsize",
    "layout",
    "max",
    "min",
    "nbytes",
    "rangelist",
    "requires_grad",
    "type",
    "unchecked_cast",
    "unchecked_unwrap_optional",
};

/// Sorted, as the list above is.
constexpr std::string_view RefusedAten[] = {
    "_no_grad_normal_",
    "_no_grad_uniform_",
    "backward",
    "confirmed_by_owner",
    "dist_backward",
    "from_file",
    "grad",
    "initial_seed",
    "is_owner",
    "local_value",
    "manual_seed",
    "owner",
    "owner_name",
    "save",
    "seed",
    "set_",
    "set_data",
    "to_here",
    "wait",
};

template <size_t N>
bool contains(const std::string_view (&sorted)[N], std::string_view name) {
  return std::binary_search(std::begin(sorted), std::end(sorted), name);
}

bool isCustomClass(const c10::TypePtr &type) {
  const auto named = type->cast<c10::NamedType>();
  return named && named->name() &&
         named->name()->qualifiedName().find("torch.classes.") !=
             std::string::npos;
}

} // namespace

std::string refusalOf(const torch::jit::Node &node) {
  for (const torch::jit::Value *value : node.outputs())
    if (isCustomClass(value->type()))
      return "custom class " + value->type()->repr_str();
  for (const torch::jit::Value *value : node.inputs())
    if (isCustomClass(value->type()))
      return "custom class " + value->type()->repr_str();
  const std::string_view kind = node.kind().toQualString();
  const size_t colons = kind.find("::");
  const std::string_view space = kind.substr(0, colons);
  const std::string_view name =
      colons == std::string_view::npos ? kind : kind.substr(colons + 2);
  if (space == "prim" ? contains(AllowedPrim, name)
                      : space == "aten" && !contains(RefusedAten, name))
    return "";
  return std::string(kind);
}

} // namespace monarch
