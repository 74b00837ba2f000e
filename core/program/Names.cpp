//===- Names.cpp - enumerators and expressions as text --------------------===//
//
// One spelling, in files, reports and errors.
//
//===----------------------------------------------------------------------===//
#include "core/program/ProgramFormat.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>

namespace monarch {

std::string_view toString(InstructionKind kind) {
  static constexpr std::array<std::string_view, 10> Names = {
      "call", "all_reduce", "all_gather", "reduce_scatter", "all_to_all",
      "send", "receive",    "zero",       "update",         "free"};
  return Names[static_cast<size_t>(kind)];
}

std::string_view toString(SegmentKind kind) {
  static constexpr std::array<std::string_view, 5> Names = {
      "count", "begin", "forward", "backward", "step"};
  return Names[static_cast<size_t>(kind)];
}

std::string_view toString(OptimizerKind kind) {
  static constexpr std::array<std::string_view, 2> Names = {"sgd", "adamw"};
  return Names[static_cast<size_t>(kind)];
}

std::string_view toString(Lifetime lifetime) {
  static constexpr std::array<std::string_view, 4> Names = {
      "persistent", "carried", "saved", "local"};
  return Names[static_cast<size_t>(lifetime)];
}

std::string_view toString(AxisRole role) {
  return role == AxisRole::Data ? "data" : "tensor";
}

std::string textOfOp(const Role &role, OpId op) {
  std::string text = fmt::format("op {}", op);
  auto origin = std::lower_bound(
      role.origins.begin(), role.origins.end(), op,
      [](const ProgramOrigin &origin, OpId id) { return origin.op < id; });
  if (origin == role.origins.end() || origin->op != op)
    return text;
  return text + " of " + originText(origin->module, origin->source);
}

std::string textOf(const ShardRef &shard) {
  return shard.peerAxis < 0 ? fmt::format("s{}", shard.shard)
                            : fmt::format("s{}@{}:{}", shard.shard,
                                          shard.peerAxis, shard.peer);
}

Json jsonOfExpr(const Expr &expr) {
  if (expr.terms.empty())
    return 0;
  if (expr.terms.size() == 1 && expr.terms[0].sizes.empty())
    return expr.terms[0].constant;
  std::string text;
  for (const Expr::Term &term : expr.terms) {
    text += text.empty() ? "" : "+";
    std::string product = term.constant == 1 && !term.sizes.empty()
                              ? ""
                              : fmt::format("{}", term.constant);
    for (const ShardRef &shard : term.sizes)
      product += (product.empty() ? "" : "*") + textOf(shard);
    text += product;
  }
  return text;
}

namespace {

class ExprParser {
public:
  explicit ExprParser(std::string_view text) : rest(text) {}

  std::optional<Expr> parse() {
    Expr expr;
    do {
      Expr::Term term;
      if (!parseTerm(term))
        return std::nullopt;
      expr.terms.push_back(std::move(term));
    } while (accept('+'));
    if (!rest.empty())
      return std::nullopt;
    return expr;
  }

  bool parseShard(ShardRef &shard) {
    if (!accept('s') || !parseNumber(shard.shard))
      return false;
    if (!accept('@'))
      return true;
    return parseNumber(shard.peerAxis) && shard.peerAxis >= 0 && accept(':') &&
           parseNumber(shard.peer);
  }

private:
  bool parseTerm(Expr::Term &term) {
    bool hasConstant = !rest.empty() && rest[0] != 's';
    if (hasConstant && !parseNumber(term.constant))
      return false;
    if (hasConstant && !accept('*'))
      return true;
    do {
      ShardRef shard;
      if (!parseShard(shard))
        return false;
      term.sizes.push_back(shard);
    } while (accept('*'));
    return true;
  }

  bool accept(char c) {
    if (rest.empty() || rest[0] != c)
      return false;
    rest.remove_prefix(1);
    return true;
  }

  template <typename Integer> bool parseNumber(Integer &number) {
    auto [end, code] =
        std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (code != std::errc())
      return false;
    rest.remove_prefix(static_cast<size_t>(end - rest.data()));
    return true;
  }

  std::string_view rest;
};

} // namespace

std::optional<Expr> parseExpr(std::string_view text) {
  std::optional<Expr> expr = ExprParser(text).parse();
  if (!expr || jsonOfExpr(*expr) != text)
    return std::nullopt;
  return expr;
}

} // namespace monarch
