//===- DTypeTest.cpp ------------------------------------------------------===//
//
// Spelling, width and kind of the element types.
//
//===----------------------------------------------------------------------===//
#include "core/graph/Graph.h"

#include <catch2/catch.hpp>

using namespace monarch;

TEST_CASE("every element type reads back from its spelling") {
  for (int i = 0; i <= static_cast<int>(LastDType); ++i) {
    DType type = static_cast<DType>(i);
    CAPTURE(toString(type));
    CHECK(parseDType(toString(type)) == type);
  }
}

TEST_CASE("a spelling of no element type is refused") {
  for (const char *text : {"", "float", "Float32", "float32 ", "int128"}) {
    CAPTURE(text);
    CHECK_FALSE(parseDType(text));
  }
}

TEST_CASE("the widths and kinds of element types are those of PyTorch") {
  CHECK(byteWidth(DType::Bool) == 1);
  CHECK(byteWidth(DType::Int16) == 2);
  CHECK(byteWidth(DType::BFloat16) == 2);
  CHECK(byteWidth(DType::Float32) == 4);
  CHECK(byteWidth(DType::Int64) == 8);
  CHECK(isFloating(DType::Float16));
  CHECK_FALSE(isFloating(DType::Int64));
  CHECK_FALSE(isFloating(DType::Bool));
  // Eight bits are stored, with a scale beside them.
  CHECK(byteWidth(DType::Float8E4M3) == 1);
  CHECK_FALSE(isFloating(DType::Float8E5M2));
  CHECK(byteWidth(DType::Complex64) == 8);
  CHECK(isFloating(DType::Complex64));
  CHECK(isComplex(DType::Complex128));
  CHECK_FALSE(isComplex(DType::Float64));
}

TEST_CASE("the numbers of element types in exported files are those of "
          "torch.export") {
  CHECK(dtypeOfExport(1) == DType::UInt8);
  CHECK(dtypeOfExport(5) == DType::Int64);
  CHECK(dtypeOfExport(7) == DType::Float32);
  CHECK(dtypeOfExport(12) == DType::Bool);
  CHECK(dtypeOfExport(13) == DType::BFloat16);
  CHECK(dtypeOfExport(10) == DType::Complex64);
  CHECK(dtypeOfExport(29) == DType::Float8E4M3);
  // Complex of two halves, and numbers of no type.
  for (int64_t code : {-1, 0, 9, 31, 99})
    CHECK_FALSE(dtypeOfExport(code));
}
