//===- Readers.h - all that reads bytes of strangers ----------------------===//
//
// Each reader takes any bytes as a file of its kind and gives back a typed
// error or what the file holds. What it accepts is used as the tool would:
// records are read, graphs and programs verified, rules expanded, and what can
// be written is written and read again. Memory stays within a multiple of the
// file's size.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/support/Error.h"

#include <span>
#include <string_view>

namespace monarch::test {

struct Reader {
  std::string_view name;
  /// Nothing when the bytes are accepted. Ends the process where a promise is
  /// broken: the next reading must give the same.
  std::optional<Error> (*read)(std::string_view bytes);
};

std::span<const Reader> readers();
const Reader &readerNamed(std::string_view name);

/// Whether the reader accepts the bytes. Ends the process, with the reason on
/// stderr, when an error is not typed or memory passes the bound.
bool accepts(const Reader &reader, std::string_view bytes);

} // namespace monarch::test
