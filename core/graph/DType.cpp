//===- DType.cpp - element types ------------------------------------------===//
//
// One table: the spelling in files, the width in bytes, whether the type takes
// gradients, and torch.export's number for it. Rows are in the order of the
// enumeration.
//
//===----------------------------------------------------------------------===//
#include "core/graph/Graph.h"

#include <array>

namespace monarch {

namespace {

struct Row {
  DType type;
  std::string_view name;
  int64_t bytes;
  bool floating;
  /// torch._export.serde.schema.ScalarType.
  int64_t exportCode;
};

constexpr std::array<Row, 14> Rows = {{
    {DType::Bool, "bool", 1, false, 12},
    {DType::UInt8, "uint8", 1, false, 1},
    {DType::Int8, "int8", 1, false, 2},
    {DType::Int16, "int16", 2, false, 3},
    {DType::Int32, "int32", 4, false, 4},
    {DType::Int64, "int64", 8, false, 5},
    {DType::Float16, "float16", 2, true, 6},
    {DType::BFloat16, "bfloat16", 2, true, 13},
    {DType::Float32, "float32", 4, true, 7},
    {DType::Float64, "float64", 8, true, 8},
    {DType::Float8E4M3, "float8_e4m3fn", 1, false, 29},
    {DType::Float8E5M2, "float8_e5m2", 1, false, 30},
    {DType::Complex64, "complex64", 8, true, 10},
    {DType::Complex128, "complex128", 16, true, 11},
}};

constexpr bool isInEnumerationOrder() {
  for (size_t i = 0; i < Rows.size(); ++i)
    if (static_cast<size_t>(Rows[i].type) != i)
      return false;
  return true;
}
static_assert(isInEnumerationOrder());
static_assert(Rows.size() == static_cast<size_t>(LastDType) + 1);

const Row &rowOf(DType type) { return Rows[static_cast<size_t>(type)]; }

} // namespace

int64_t byteWidth(DType type) { return rowOf(type).bytes; }

bool isFloating(DType type) { return rowOf(type).floating; }

bool isComplex(DType type) {
  return type == DType::Complex64 || type == DType::Complex128;
}

std::string_view toString(DType type) { return rowOf(type).name; }

std::optional<DType> parseDType(std::string_view text) {
  for (const Row &row : Rows)
    if (row.name == text)
      return row.type;
  return std::nullopt;
}

std::optional<DType> dtypeOfExport(int64_t code) {
  for (const Row &row : Rows)
    if (row.exportCode == code)
      return row.type;
  return std::nullopt;
}

} // namespace monarch
