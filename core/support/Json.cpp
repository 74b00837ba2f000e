//===- Json.cpp - parsing, typed reads and the canonical writer -----------===//
//
// The pointer to a mistake is found after the fact, by searching the document
// for the node: reads that succeed pay nothing for it.
//
//===----------------------------------------------------------------------===//
#include "core/support/Json.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace monarch {

namespace {

constexpr size_t MaxDepth = 128;
constexpr size_t LineWidth = 100;

/// RFC 6901: "~" and "/" inside a key are escaped.
std::string escapedKey(const std::string &key) {
  std::string text;
  for (char c : key)
    text += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return text;
}

bool findPointer(const Json &from, const Json &node, std::string &pointer) {
  if (&from == &node)
    return true;
  size_t length = pointer.size();
  auto inside = [&](const std::string &key, const Json &child) {
    pointer += "/" + key;
    bool found = findPointer(child, node, pointer);
    if (!found)
      pointer.resize(length);
    return found;
  };
  if (from.is_array())
    for (size_t i = 0; i < from.size(); ++i)
      if (inside(std::to_string(i), from[i]))
        return true;
  if (from.is_object())
    for (const auto &[key, child] : from.items())
      if (inside(escapedKey(key), child))
        return true;
  return false;
}

const Json &missing() {
  static const Json null;
  return null;
}

bool isNumberArray(const Json &json) {
  return json.is_array() &&
         std::all_of(json.begin(), json.end(),
                     [](const Json &element) { return element.is_number(); });
}

void writeScalar(const Json &json, std::string &out) {
  out += json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Appends the one-line form; false when it grows past `limit`.
bool writeLine(const Json &json, std::string &out, size_t limit) {
  if (out.size() > limit)
    return false;
  if (json.is_array()) {
    out += '[';
    for (size_t i = 0; i < json.size(); ++i) {
      out += i ? ", " : "";
      if (!writeLine(json[i], out, limit))
        return false;
    }
    out += ']';
  } else if (json.is_object()) {
    out += '{';
    bool first = true;
    for (const auto &[key, child] : json.items()) {
      out += first ? "" : ", ";
      first = false;
      writeScalar(key, out);
      out += ": ";
      if (!writeLine(child, out, limit))
        return false;
    }
    out += '}';
  } else {
    writeScalar(json, out);
  }
  return out.size() <= limit;
}

/// Builds the document from the parser's events. What an object or array holds
/// is gathered first, so that each is filled once: growing one copies its keys.
struct TreeBuilder {
  /// Of the containers that are open: where their part of `values` and `keys`
  /// begins.
  struct Level {
    size_t value, key;
  };
  std::vector<Level> open;
  std::vector<Json> values;
  std::vector<std::string> keys;
  std::string problem;

  bool add(Json value) {
    values.push_back(std::move(value));
    return isShallow();
  }
  bool isShallow() {
    if (open.size() <= MaxDepth)
      return true;
    problem = "JSON nested deeper than " + std::to_string(MaxDepth);
    return false;
  }
  bool start() {
    if (!isShallow())
      return false;
    open.push_back({values.size(), keys.size()});
    return true;
  }
  /// Ends a container: what it held gives way to itself.
  bool end(Json container) {
    values.resize(open.back().value);
    keys.resize(open.back().key);
    open.pop_back();
    values.push_back(std::move(container));
    return true;
  }
  bool areDistinct() {
    if (keys.size() < open.back().key + 2)
      return true;
    std::vector<std::string_view> sorted(keys.begin() + open.back().key,
                                         keys.end());
    std::sort(sorted.begin(), sorted.end());
    auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice == sorted.end())
      return true;
    problem = "key \"" + std::string(*twice) + "\" twice in an object";
    return false;
  }

  // The interface that nlohmann's parser calls.
  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(int64_t value) { return add(value); }
  bool number_unsigned(uint64_t value) { return add(value); }
  bool number_float(double value, const std::string &) { return add(value); }
  bool string(std::string &value) { return add(std::move(value)); }
  bool binary(Json::binary_t &value) { return add(std::move(value)); }
  bool key(std::string &value) {
    keys.push_back(std::move(value));
    return isShallow();
  }
  bool start_object(size_t) { return start(); }
  bool start_array(size_t) { return start(); }
  bool end_object() {
    if (!areDistinct())
      return false;
    Json::object_t object;
    object.reserve(keys.size() - open.back().key);
    auto value = values.begin() + open.back().value;
    for (auto name = keys.begin() + open.back().key; name != keys.end(); ++name)
      static_cast<Json::object_t::Container &>(object).emplace_back(
          std::move(*name), std::move(*value++));
    return end(std::move(object));
  }
  bool end_array() {
    auto begin = values.begin() + open.back().value;
    return end(Json::array_t(std::make_move_iterator(begin),
                             std::make_move_iterator(values.end())));
  }
  bool parse_error(size_t, const std::string &,
                   const Json::exception &exception) {
    // "[json.exception.parse_error.101] parse error at line 1, ...".
    std::string_view message = exception.what();
    size_t end = message.find("] ");
    problem = "not JSON: " + std::string(end == std::string_view::npos
                                             ? message
                                             : message.substr(end + 2));
    return false;
  }
};

/// `used` columns are taken on the current line already.
void write(const Json &json, std::string &out, size_t indent, size_t used) {
  size_t start = out.size();
  size_t limit = isNumberArray(json) || !json.is_structured() || json.empty()
                     ? std::numeric_limits<size_t>::max()
                     : start + (used < LineWidth ? LineWidth - used : 0);
  if (writeLine(json, out, limit))
    return;
  out.resize(start);
  out += json.is_array() ? '[' : '{';
  bool first = true;
  auto startElement = [&] {
    out += first ? "\n" : ",\n";
    first = false;
    out.append(indent + 1, ' ');
  };
  if (json.is_array()) {
    for (const Json &element : json) {
      startElement();
      write(element, out, indent + 1, indent + 2);
    }
  } else {
    for (const auto &[key, child] : json.items()) {
      startElement();
      size_t keyStart = out.size();
      writeScalar(key, out);
      out += ": ";
      write(child, out, indent + 1, indent + 2 + out.size() - keyStart);
    }
  }
  out += '\n';
  out.append(indent, ' ');
  out += json.is_array() ? ']' : '}';
}

} // namespace

Expected<Json> parseJson(std::string_view text, const std::string &where) {
  auto refuse = [&](std::string what) {
    return Error{"MP1903", ExitCode::BadInput, std::move(what), where,
                 "write the file again with the tool that made it"};
  };
  TreeBuilder builder;
  if (!Json::sax_parse(text.begin(), text.end(), &builder))
    return refuse(std::move(builder.problem));
  return std::move(builder.values.front());
}

std::string writeJson(const Json &json) {
  std::string out;
  write(json, out, 0, 0);
  out += '\n';
  return out;
}

double rounded(double value) {
  char text[32];
  snprintf(text, sizeof text, "%.6g", value);
  return std::strtod(text, nullptr);
}

Json jsonOfReal(double value) {
  if (std::isnan(value))
    return "nan";
  if (std::isinf(value))
    return value > 0 ? "inf" : "-inf";
  return value;
}

void JsonValue::fail(std::string what) const {
  if (document->error)
    return;
  std::string pointer;
  findPointer(document->root, *json, pointer);
  document->error = Error{document->id, document->code, std::move(what),
                          document->where + "#" + pointer, document->fix};
}

int64_t JsonValue::integer() const {
  if (json->is_number_unsigned() &&
      json->get<uint64_t>() > std::numeric_limits<int64_t>::max()) {
    fail("integer too large");
    return 0;
  }
  if (json->is_number_integer())
    return json->get<int64_t>();
  fail("expected an integer");
  return 0;
}

int64_t JsonValue::integer(int64_t low, int64_t high) const {
  int64_t value = integer();
  if (value >= low && value <= high)
    return value;
  fail("expected an integer in [" + std::to_string(low) + ", " +
       std::to_string(high) + "], got " + std::to_string(value));
  return low;
}

double JsonValue::number() const {
  if (json->is_number())
    return json->get<double>();
  fail("expected a number");
  return 0;
}

double JsonValue::real() const {
  if (json->is_string()) {
    const auto &text = json->get_ref<const std::string &>();
    if (text == "inf")
      return std::numeric_limits<double>::infinity();
    if (text == "-inf")
      return -std::numeric_limits<double>::infinity();
    if (text == "nan")
      return std::numeric_limits<double>::quiet_NaN();
  }
  return number();
}

bool JsonValue::boolean() const {
  if (json->is_boolean())
    return json->get<bool>();
  fail("expected true or false");
  return false;
}

std::string JsonValue::string() const {
  if (json->is_string())
    return json->get<std::string>();
  fail("expected a string");
  return "";
}

std::vector<JsonValue> JsonValue::elements() const {
  std::vector<JsonValue> values;
  if (!json->is_array()) {
    fail("expected an array");
  } else if (ok()) {
    values.reserve(json->size());
    for (const Json &element : *json)
      values.push_back(JsonValue(document, &element));
  }
  return values;
}

std::vector<JsonValue> JsonValue::elements(size_t count) const {
  std::vector<JsonValue> values = elements();
  if (values.size() != count) {
    fail("expected " + std::to_string(count) + " elements, got " +
         std::to_string(values.size()));
    values.assign(count, JsonValue(document, &missing()));
  }
  return values;
}

std::vector<int64_t> JsonValue::integers() const {
  std::vector<int64_t> values;
  for (const JsonValue &element : elements())
    values.push_back(element.integer());
  return values;
}

std::vector<std::string> JsonValue::strings() const {
  std::vector<std::string> values;
  for (const JsonValue &element : elements())
    values.push_back(element.string());
  return values;
}

std::vector<std::pair<std::string, JsonValue>> JsonValue::fields() const {
  std::vector<std::pair<std::string, JsonValue>> values;
  if (!json->is_object()) {
    fail("expected an object");
  } else if (ok()) {
    values.reserve(json->size());
    for (auto field = json->begin(); field != json->end(); ++field)
      values.emplace_back(field.key(), JsonValue(document, &*field));
  }
  return values;
}

JsonValue JsonValue::operator[](std::string_view key) const {
  if (std::optional<JsonValue> value = find(key))
    return *value;
  if (json->is_object())
    fail("field \"" + std::string(key) + "\" is missing");
  return JsonValue(document, &missing());
}

std::optional<JsonValue> JsonValue::find(std::string_view key) const {
  if (!json->is_object()) {
    fail("expected an object");
    return std::nullopt;
  }
  for (auto field = json->begin(); field != json->end(); ++field)
    if (field.key() == key)
      return JsonValue(document, &*field);
  return std::nullopt;
}

void JsonValue::refuseFieldsBeside(
    std::initializer_list<std::string_view> keys) const {
  for (const auto &[key, value] : fields())
    if (std::find(keys.begin(), keys.end(), key) == keys.end())
      value.fail("unknown field \"" + key + "\"");
}

} // namespace monarch
