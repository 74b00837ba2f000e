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

TEST_CASE("several errors are one with a line for each") {
  const Error first{"MP1", ExitCode::Stale, "a is wrong", "x (m.py:1)", "do"};
  const Error second{"MP1", ExitCode::Stale, "b is wrong", "", "do"};
  CHECK(toString(joined({first})) == toString(first));
  const Error both = joined({first, second});
  CHECK(both.code == ExitCode::Stale);
  CHECK(toString(both) ==
        "error MP1: 2 violations:\n  a is wrong, at x (m.py:1)\n  b is wrong\n"
        "  fix: do");
  const Error many = joined(std::vector<Error>(100, first));
  CHECK(many.what.find("100 violations") == 0);
  CHECK(many.what.find("and 80 more") != std::string::npos);
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
