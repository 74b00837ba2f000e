//===- PrintableTest.cpp --------------------------------------------------===//

#include "core/support/Printable.h"
#include "core/support/Error.h"

#include <catch2/catch.hpp>

using namespace monarch;

TEST_CASE(
    "Text is shown as it is, control characters and stray bytes escaped") {
  for (const char *plain : {"", "a b\n\tc", "größe", "層 0", "\U0001F600"})
    CHECK(printable(plain) == plain);
  CHECK(printable("\x1b[2Jgone") == "\\x1b[2Jgone");
  CHECK(printable(std::string_view("a\0b", 3)) == "a\\x00b");
  CHECK(printable("\x7f\r") == "\\x7f\\x0d");
  // A control character of two bytes.
  CHECK(printable("\xc2\x9b") == "\\xc2\\x9b");
  // No UTF-8: a lone continuation, a cut character, an overlong slash, a
  // surrogate, above the last code point.
  CHECK(printable("\xae") == "\\xae");
  CHECK(printable("\xe5\xb1") == "\\xe5\\xb1");
  CHECK(printable("\xc0\xaf") == "\\xc0\\xaf");
  CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");
  CHECK(printable("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");
  CHECK(printable("\xe5x") == "\\xe5x");
}

TEST_CASE("An error shows what a stranger wrote, and obeys none of it") {
  CHECK(toString({"MP1003", ExitCode::BadInput, "record \x1b]0;x\x07", "a\xff",
                  ""}) == "error MP1003: record \\x1b]0;x\\x07\n  at a\\xff");
}
