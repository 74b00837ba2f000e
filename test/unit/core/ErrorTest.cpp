//===- ErrorTest.cpp ------------------------------------------------------===//
//
// The text of errors, and Expected as a value or an error.
//
//===----------------------------------------------------------------------===//
#include "core/support/Error.h"

#include <catch2/catch.hpp>

using namespace monarch;

TEST_CASE("an error spells id, what, where and fix, one line each") {
  Error error{"MP1004", ExitCode::BadInput, "not a model", "a.pt2", "export"};
  CHECK(toString(error) ==
        "error MP1004: not a model\n  at a.pt2\n  fix: export");
}

TEST_CASE("an error without place or fix is one line") {
  Error error{"MP9000", ExitCode::Internal, "broken", "", ""};
  CHECK(toString(error) == "error MP9000: broken");
}

TEST_CASE("Expected holds a value or an error") {
  Expected<int> value = 3;
  REQUIRE(value);
  CHECK(*value == 3);

  Expected<int> failure = Error{"MP1", ExitCode::Usage, "no", "", ""};
  REQUIRE_FALSE(failure);
  CHECK(failure.error().id == "MP1");
  CHECK(failure.error().code == ExitCode::Usage);
}
