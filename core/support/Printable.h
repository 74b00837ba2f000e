//===- Printable.h - text of strangers, safe to show ----------------------===//
//
// Names and messages hold bytes of files that somebody else made. A terminal
// obeys some of them, and a log reader stops at bytes that are no UTF-8.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <string>
#include <string_view>

namespace monarch {

/// The text with control characters but newlines and tabs, and bytes that are
/// no UTF-8, as "\x1b".
std::string printable(std::string_view text);

} // namespace monarch
