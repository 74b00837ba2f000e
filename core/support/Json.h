//===- Json.h - canonical JSON, read with typed errors --------------------===//
//
// Every file of the project is canonical JSON: fixed key order, one element per
// line, trailing newline, so write(read(x)) == x. Reading goes through
// JsonValue: typed, and the first mistake of a document is kept with the JSON
// pointer to it, so that readers stay straight code and check once at the end.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/support/Error.h"

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string_view>

namespace monarch {

/// Objects keep the order of insertion: the writer of a file fixes it.
using Json = nlohmann::ordered_json;

/// MP1903 on malformed text, duplicate keys and more than 128 levels. `where`
/// names the document in errors.
Expected<Json> parseJson(std::string_view text, const std::string &where);

/// A value stands on one line if it fits into 100 columns there or is an array
/// of numbers; otherwise one element per line. Ends with a newline.
std::string writeJson(const Json &json);

/// Six significant digits: how predictions are written.
double rounded(double value);
/// JSON has no infinities: "inf", "-inf" and "nan" stand for them.
Json jsonOfReal(double value);

/// A document being read: where errors are said to be, and the first of them.
struct JsonDocument {
  const Json &root;
  /// The file, for Error::where, and what its errors are called.
  std::string where;
  std::string id = "MP1904";
  ExitCode code = ExitCode::BadInput;
  std::string fix = {};
  std::optional<Error> error = {};
};

/// A place in a document. After the first error everything reads as zero, empty
/// or missing: loops over elements end, and the reader returns
/// `document.error`.
class JsonValue {
public:
  explicit JsonValue(JsonDocument &document)
      : document(&document), json(&document.root) {}

  int64_t integer() const;
  /// An integer in [low, high].
  int64_t integer(int64_t low, int64_t high) const;
  /// A finite number.
  double number() const;
  /// A number, or one of the texts of `jsonOfReal`.
  double real() const;
  bool boolean() const;
  std::string string() const;
  bool isNull() const { return json->is_null(); }
  bool isArray() const { return json->is_array(); }
  bool isObject() const { return json->is_object(); }
  bool isString() const { return json->is_string(); }
  bool isInteger() const { return json->is_number_integer(); }
  bool isNumber() const { return json->is_number(); }
  bool isBoolean() const { return json->is_boolean(); }

  /// An array's elements; an error on anything else.
  std::vector<JsonValue> elements() const;
  /// The same, with exactly this many.
  std::vector<JsonValue> elements(size_t count) const;
  std::vector<int64_t> integers() const;
  std::vector<std::string> strings() const;
  /// An object's fields, in the order of the file.
  std::vector<std::pair<std::string, JsonValue>> fields() const;

  /// A field that must be there.
  JsonValue operator[](std::string_view key) const;
  /// A field that may be missing.
  std::optional<JsonValue> find(std::string_view key) const;
  /// An error on any field beside these.
  void refuseFieldsBeside(std::initializer_list<std::string_view> keys) const;

  /// Records an error here, unless there was one before.
  void fail(std::string what) const;
  bool ok() const { return !document->error; }
  const Json &raw() const { return *json; }

private:
  JsonValue(JsonDocument *document, const Json *json)
      : document(document), json(json) {}
  JsonDocument *document;
  const Json *json;
};

} // namespace monarch
