//===- SizeExpression.cpp - a reader that computes ------------------------===//
//
// No tree is made: each call is computed where it is read. Nesting is bounded.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/capture/ExportedProgram.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <vector>

namespace monarch {

namespace {

constexpr int MaxDepth = 64;

class Reader {
public:
  Reader(const std::string &text, const SymbolValues &symbols)
      : text(text), symbols(symbols) {}

  std::optional<int64_t> whole() {
    auto value = read(0);
    return at == text.size() ? value : std::nullopt;
  }

private:
  bool skip(char expected) {
    while (at < text.size() && text[at] == ' ')
      ++at;
    if (at >= text.size() || text[at] != expected)
      return false;
    ++at;
    return true;
  }

  std::string word() {
    size_t begin = at;
    while (at < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[at])) != 0 ||
            text[at] == '_'))
      ++at;
    return text.substr(begin, at - begin);
  }

  std::optional<int64_t> number() {
    int64_t value = 0;
    auto [end, error] =
        std::from_chars(text.data() + at, text.data() + text.size(), value);
    if (error != std::errc())
      return std::nullopt;
    at = static_cast<size_t>(end - text.data());
    return value;
  }

  std::optional<int64_t> symbol() {
    if (!skip('\''))
      return std::nullopt;
    size_t end = text.find('\'', at);
    if (end == std::string::npos)
      return std::nullopt;
    auto found = symbols.find(text.substr(at, end - at));
    // What is assumed of it follows its name.
    at = text.find(')', end);
    if (found == symbols.end() || at == std::string::npos)
      return std::nullopt;
    ++at;
    return found->second;
  }

  std::optional<int64_t> read(int depth) {
    if (depth > MaxDepth)
      return std::nullopt;
    skip(' ');
    const std::string name = word();
    if (!skip('('))
      return std::nullopt;
    if (name == "Symbol")
      return symbol();
    if (name == "Integer") {
      auto value = number();
      return skip(')') ? value : std::nullopt;
    }
    std::vector<int64_t> operands;
    do {
      auto operand = read(depth + 1);
      if (!operand)
        return std::nullopt;
      operands.push_back(*operand);
    } while (skip(','));
    return skip(')') ? applied(name, operands) : std::nullopt;
  }

  static std::optional<int64_t> folded(const std::vector<int64_t> &operands,
                                       bool (*join)(int64_t, int64_t,
                                                    int64_t *)) {
    int64_t value = operands.front();
    for (size_t i = 1; i < operands.size(); ++i)
      if (join(value, operands[i], &value))
        return std::nullopt;
    return value;
  }

  static std::optional<int64_t> applied(const std::string &name,
                                        const std::vector<int64_t> &operands) {
    if (name == "Add")
      return folded(operands, [](int64_t a, int64_t b, int64_t *c) {
        return __builtin_add_overflow(a, b, c);
      });
    if (name == "Mul")
      return folded(operands, [](int64_t a, int64_t b, int64_t *c) {
        return __builtin_mul_overflow(a, b, c);
      });
    if (name == "Max")
      return *std::max_element(operands.begin(), operands.end());
    if (name == "Min")
      return *std::min_element(operands.begin(), operands.end());
    if (operands.size() != 2)
      return std::nullopt;
    const int64_t a = operands[0], b = operands[1];
    if (name == "Pow") {
      int64_t power = 1;
      for (int64_t i = 0; i < std::min<int64_t>(b, 63); ++i)
        if (__builtin_mul_overflow(power, a, &power))
          return std::nullopt;
      return b < 0 || b > 62 ? std::nullopt : std::optional(power);
    }
    if (b <= 0)
      return std::nullopt;
    const int64_t rest = ((a % b) + b) % b;
    if (name == "FloorDiv" || name == "CleanDiv")
      return (a - rest) / b;
    if (name == "Mod" || name == "PythonMod")
      return rest;
    return std::nullopt;
  }

  const std::string &text;
  const SymbolValues &symbols;
  size_t at = 0;
};

} // namespace

std::optional<int64_t> evaluateSize(const std::string &expression,
                                    const SymbolValues &symbols) {
  return Reader(expression, symbols).whole();
}

std::optional<int64_t> evaluate(const ExportedSize &size,
                                const SymbolValues &symbols) {
  return size.symbols.empty() ? size.hint
                              : evaluateSize(size.expression, symbols);
}

std::optional<int64_t> solveSize(const std::string &expression,
                                 const std::string &symbol, int64_t value) {
  // Its value at three places says whether it is a line, and which.
  std::optional<int64_t> at[3];
  for (int64_t i = 0; i < 3; ++i)
    at[i] = evaluateSize(expression, {{symbol, 4 * (i + 1)}});
  if (!at[0] || !at[1] || !at[2])
    return std::nullopt;
  const int64_t rise = *at[1] - *at[0];
  if (rise == 0 || *at[2] - *at[1] != rise || rise % 4 != 0)
    return std::nullopt;
  const int64_t slope = rise / 4, rest = value - (*at[0] - rise);
  if (rest % slope != 0)
    return std::nullopt;
  return rest / slope;
}

} // namespace monarch
