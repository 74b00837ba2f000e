//===- SizeExpressionTest.cpp ---------------------------------------------===//
//
// Sizes as torch.export spells them: computed, solved, refused.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/capture/SizeExpression.h"

#include <catch2/catch.hpp>

using namespace monarch;

namespace {

const std::string s = "Symbol('s17', positive=True, integer=True)";
const std::string twice = "Mul(Integer(2), " + s + ")";

} // namespace

TEST_CASE("sizes are computed from their symbols") {
  const SymbolValues symbols = {{"s17", 5}, {"s3", 7}};
  CHECK(evaluateSize(s, symbols) == 5);
  CHECK(evaluateSize(twice, symbols) == 10);
  CHECK(evaluateSize("Add(" + twice + ", Integer(-1))", symbols) == 9);
  CHECK(evaluateSize("FloorDiv(Add(" + s + ", Integer(-12)), Integer(2))",
                     symbols) == -4);
  CHECK(evaluateSize("Mod(Integer(-1), Integer(4))", symbols) == 3);
  CHECK(evaluateSize("Max(" + s + ", Symbol('s3'))", symbols) == 7);
  CHECK(evaluateSize("Pow(" + s + ", Integer(2))", symbols) == 25);
}

TEST_CASE("what is no size is none") {
  const SymbolValues symbols = {{"s17", 5}};
  std::string deep, close;
  for (int i = 0; i < 10'000; ++i) {
    deep += "Add(";
    close += ")";
  }
  for (const std::string &text :
       {std::string(), std::string("7"), std::string("Integer()"),
        std::string("Integer(7"), std::string("Integer(7))"),
        std::string("Integer(99999999999999999999)"),
        std::string("Symbol('s9')"), std::string("Symbol('s17'"),
        std::string("Add()"), std::string("Sin(Integer(1))"),
        std::string("FloorDiv(Integer(1), Integer(0))"),
        std::string("Mul(Integer(9223372036854775807), Integer(2))"),
        std::string("Pow(Integer(2), Integer(63))"),
        std::string("Pow(Integer(2), Integer(-1))"),
        deep + "Integer(1)" + close}) {
    CAPTURE(text.substr(0, 60));
    CHECK_FALSE(evaluateSize(text, symbols));
  }
}

TEST_CASE("a symbol is found from a size that is linear in it") {
  CHECK(solveSize(s, "s17", 12) == 12);
  CHECK(solveSize(twice, "s17", 12) == 6);
  CHECK(solveSize("Add(" + twice + ", Integer(4))", "s17", 12) == 4);
  CHECK_FALSE(solveSize(twice, "s17", 13));
  CHECK_FALSE(solveSize("Pow(" + s + ", Integer(2))", "s17", 16));
  CHECK_FALSE(solveSize("Integer(12)", "s17", 12));
}
