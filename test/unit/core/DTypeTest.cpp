//===- DTypeTest.cpp ------------------------------------------------------===//
//
// Spelling, width and kind of the element types.
//
//===----------------------------------------------------------------------===//
#include "core/graph/Graph.h"

#include <catch2/catch.hpp>

using namespace monarch;

TEST_CASE("every element type reads back from its spelling") {
  for (int i = 0; i <= static_cast<int>(DType::Float64); ++i) {
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
}

TEST_CASE("the numbers of element types in exported files are those of "
          "torch.export") {
  CHECK(dtypeOfExport(1) == DType::UInt8);
  CHECK(dtypeOfExport(5) == DType::Int64);
  CHECK(dtypeOfExport(7) == DType::Float32);
  CHECK(dtypeOfExport(12) == DType::Bool);
  CHECK(dtypeOfExport(13) == DType::BFloat16);
  // Complex, and numbers of no type.
  for (int64_t code : {-1, 0, 9, 10, 11, 99})
    CHECK_FALSE(dtypeOfExport(code));
}
