//===- ProgramFormat.h - words of monarch.program/1 -----------------------===//
//
// What the reader and the writer of program files share. See
// docs/program-format.md.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/program/Program.h"
#include "core/support/Json.h"

namespace monarch {

inline constexpr std::string_view ProgramSchema = "monarch.program/1";
inline constexpr std::string_view ManifestFile = "manifest.json";

/// "role-0.json".
std::string roleFile(size_t stage);
/// The manifest, or the file of a role.
bool isProgramFile(const std::string &name);

/// All enumerators in order, for parsing by name.
template <typename Enum> struct Enumerators;
template <> struct Enumerators<InstructionKind> {
  static constexpr InstructionKind last = InstructionKind::Free;
};
template <> struct Enumerators<SegmentKind> {
  static constexpr SegmentKind last = SegmentKind::Step;
};
template <> struct Enumerators<OptimizerKind> {
  static constexpr OptimizerKind last = OptimizerKind::AdamW;
};
template <> struct Enumerators<Lifetime> {
  static constexpr Lifetime last = Lifetime::Local;
};
template <> struct Enumerators<AxisRole> {
  static constexpr AxisRole last = AxisRole::Tensor;
};

std::string_view toString(Lifetime lifetime);
std::string_view toString(AxisRole role);

template <typename Enum>
std::optional<Enum> parseEnumerator(std::string_view text) {
  for (int i = 0; i <= static_cast<int>(Enumerators<Enum>::last); ++i)
    if (toString(static_cast<Enum>(i)) == text)
      return static_cast<Enum>(i);
  return std::nullopt;
}

/// An integer, or "s3" (size of shard 3), "s3@1:0" (at coordinate 0 of axis 1),
/// "4*s3*s5+2".
Json jsonOfExpr(const Expr &expr);
/// What `jsonOfExpr` writes, nothing else.
std::optional<Expr> parseExpr(std::string_view text);
std::string textOf(const ShardRef &shard);

/// Every file of the program by name.
std::map<std::string, std::string> filesOf(const Program &program);
/// Errors go to the document.
Role roleOfJson(JsonDocument &document);

} // namespace monarch
