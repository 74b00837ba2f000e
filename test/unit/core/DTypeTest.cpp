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
