//===- SizeExpression.h - sizes that are computed from others -------------===//
//
// torch.export spells a size that it left open as a tree of calls:
// "Mul(Integer(2), Symbol('s17', positive=True, integer=True))".
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace monarch {

using SymbolValues = std::map<std::string, int64_t>;

/// The value; nullopt where the text is no such tree, names a symbol without a
/// value, divides by nothing, or passes 63 bits.
std::optional<int64_t> evaluateSize(const std::string &expression,
                                    const SymbolValues &symbols);

/// The value of the one symbol with which the expression, linear in it, is
/// `value`; nullopt where there is none.
std::optional<int64_t> solveSize(const std::string &expression,
                                 const std::string &symbol, int64_t value);

} // namespace monarch
