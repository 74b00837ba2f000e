//===- JsonTest.cpp -------------------------------------------------------===//
//
// Canonical text, refusal of malformed text, and typed reads with the pointer
// to the first mistake.
//
//===----------------------------------------------------------------------===//
#include "core/support/Json.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

using namespace monarch;

namespace {

Json parse(std::string_view text) {
  Expected<Json> json = parseJson(text, "test.json");
  REQUIRE(json);
  return *json;
}

std::string refusal(std::string_view text) {
  Expected<Json> json = parseJson(text, "test.json");
  REQUIRE_FALSE(json);
  CHECK(json.error().id == "MP1903");
  CHECK(json.error().where == "test.json");
  return json.error().what;
}

} // namespace

TEST_CASE("short values stand on one line, long ones have a line an element") {
  std::string word(40, 'w');
  Json json = {{"b", {1, 2, {{"x", true}}}}, {"a", {word, word, word}}};
  CHECK(writeJson(json) ==
        "{\n \"b\": [1, 2, {\"x\": true}],\n \"a\": [\n  \"" + word +
            "\",\n  \"" + word + "\",\n  \"" + word + "\"\n ]\n}\n");
}

TEST_CASE("arrays of numbers stand on one line however long") {
  Json json = std::vector<int64_t>(500, 1234567);
  std::string text = writeJson(json);
  CHECK(std::count(text.begin(), text.end(), '\n') == 1);
}

TEST_CASE("written text reads back to the same text") {
  std::string text = writeJson(parse(
      R"({"z": -0.0, "y": [1e-300, 0.1, 9223372036854775807], "x": "aé\n",
          "empty": {}, "none": [], "null": null})"));
  CHECK(writeJson(parse(text)) == text);
}

TEST_CASE("malformed JSON is refused") {
  CHECK_FALSE(refusal("").empty());
  CHECK_FALSE(refusal("{\"a\": }").empty());
  CHECK_FALSE(refusal("[1, 2] 3").empty());
  CHECK_FALSE(refusal("[NaN]").empty());
  CHECK_FALSE(refusal("[1e999]").empty());
  CHECK_FALSE(refusal("\"\xff\"").empty());
  CHECK(refusal(R"({"a": {"b": 1, "b": 2}})") ==
        "key \"b\" twice in an object");
  CHECK(refusal(std::string(100000, '[')).find("nested deeper") !=
        std::string::npos);
  CHECK(refusal(std::string(200, '[') + std::string(200, ']'))
            .find("nested deeper") != std::string::npos);
}

TEST_CASE("typed reads give the values") {
  Json json = parse(R"({"i": -3, "n": 0.5, "b": true, "s": "t",
                        "l": [1, 2], "inf": "-inf", "o": {"k": []}})");
  JsonDocument document{json, "test.json"};
  JsonValue root(document);
  CHECK(root["i"].integer() == -3);
  CHECK(root["n"].number() == 0.5);
  CHECK(root["b"].boolean());
  CHECK(root["s"].string() == "t");
  CHECK(root["l"].integers() == std::vector<int64_t>{1, 2});
  CHECK(root["inf"].real() == -std::numeric_limits<double>::infinity());
  CHECK(root["o"].fields().front().first == "k");
  CHECK_FALSE(root.find("absent"));
  root.refuseFieldsBeside({"i", "n", "b", "s", "l", "inf", "o"});
  CHECK_FALSE(document.error);
}

TEST_CASE("the first mistake is kept, with the pointer to it") {
  Json json = parse(R"({"list": [{"a/b": 1}, {"a/b": "x"}], "big":
                        18446744073709551615})");
  auto errorOf = [&](auto read) {
    JsonDocument document{json, "test.json"};
    read(JsonValue(document));
    REQUIRE(document.error);
    return document.error->where + ": " + document.error->what;
  };
  CHECK(errorOf([](JsonValue root) {
          for (const JsonValue &element : root["list"].elements())
            element["a/b"].integer();
          root["never"].string();
        }) == "test.json#/list/1/a~1b: expected an integer");
  CHECK(errorOf([](JsonValue root) { root["list"].elements(3); }) ==
        "test.json#/list: expected 3 elements, got 2");
  CHECK(errorOf([](JsonValue root) { root["absent"]["deeper"].integer(); }) ==
        "test.json#: field \"absent\" is missing");
  CHECK(errorOf([](JsonValue root) { root.refuseFieldsBeside({"big"}); }) ==
        "test.json#/list: unknown field \"list\"");
  CHECK(errorOf([](JsonValue root) { root["big"].integer(); }) ==
        "test.json#/big: integer too large");
  CHECK(errorOf([](JsonValue root) {
          root["list"].elements(2)[0]["a/b"].integer(2, 5);
        }) == "test.json#/list/0/a~1b: expected an integer in [2, 5], got 1");
}

TEST_CASE("predictions have six digits and infinities have names") {
  CHECK(rounded(123456789.0) == 123457000.0);
  CHECK(rounded(0.1 + 0.2) == 0.3);
  CHECK(jsonOfReal(std::nan("")) == "nan");
  CHECK(jsonOfReal(std::numeric_limits<double>::infinity()) == "inf");
  CHECK(jsonOfReal(1.5) == 1.5);
}
