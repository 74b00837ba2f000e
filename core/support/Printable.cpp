//===- Printable.cpp - text of strangers, safe to show --------------------===//
//
// See Printable.h.
//
//===----------------------------------------------------------------------===//
#include "core/support/Printable.h"

#include <cstdint>
#include <fmt/format.h>

namespace monarch {

namespace {

/// Bytes of the character that begins here; 0 where none does (RFC 3629).
size_t lengthOfCharacter(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const size_t length = first < 0x80    ? 1
                        : first < 0xc2  ? 0
                        : first < 0xe0  ? 2
                        : first < 0xf0  ? 3
                        : first <= 0xf4 ? 4
                                        : 0;
  if (length > text.size())
    return 0;
  uint32_t code = length > 1 ? first & (0x7f >> length) : first;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80)
      return 0;
    code = code << 6 | (byte(i) & 0x3f);
  }
  const bool isSurrogate = code >= 0xd800 && code <= 0xdfff;
  const bool isOverlong = (length == 3 && code < 0x800) ||
                          (length == 4 && (code < 0x10000 || code > 0x10ffff));
  return isSurrogate || isOverlong ? 0 : length;
}

bool isControl(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1)
    return (first < 0x20 && first != '\n' && first != '\t') || first == 0x7f;
  // U+0080 to U+009f.
  return character.size() == 2 && first == 0xc2 &&
         static_cast<unsigned char>(character[1]) < 0xa0;
}

} // namespace

std::string printable(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const size_t length = lengthOfCharacter(text);
    const std::string_view character = text.substr(0, length ? length : 1);
    if (length && !isControl(character))
      shown += character;
    else
      for (char byte : character)
        shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
    text.remove_prefix(character.size());
  }
  return shown;
}

} // namespace monarch
