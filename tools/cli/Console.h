//===- Console.h - what the command line says, and its exit codes ---------===//
//
// The result goes to stdout, all else to stderr. With --format json stdout
// holds exactly one document, also on failure.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/support/Error.h"
#include "core/support/Json.h"

#include <string_view>

namespace monarch::cli {

enum class Format { Text, Json };

class Console {
public:
  Format format = Format::Text;

  /// The result of a verb: text, with what a stranger wrote made printable, or
  /// the document.
  void result(std::string_view text, const Json &document) const;
  /// A result that is a JSON file in either format, byte by byte.
  void file(std::string_view bytes) const;
  void note(std::string_view text) const;
  /// Says the error and returns its exit code.
  int fail(const Error &error) const;
};

} // namespace monarch::cli
