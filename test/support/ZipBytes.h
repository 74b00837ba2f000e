//===- ZipBytes.h - archives made by hand ---------------------------------===//
//
// Stored records as PyTorch writes them, ZIP or ZIP64, with right checksums:
// tests then cut and bend what they want.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/support/Zip.h"

#include <string>
#include <vector>

namespace monarch::test {

struct Content {
  std::string name;
  std::string bytes;
};

inline void put(std::string &out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i)
    out += static_cast<char>(value >> (8 * i));
}

inline std::string header(uint32_t signature, const Content &content,
                          bool isCentral, bool isZip64, uint64_t offset,
                          uint16_t method) {
  std::string out;
  put(out, signature, 4);
  if (isCentral)
    put(out, 45, 2);
  put(out, 45, 2); // version needed
  put(out, 0, 2);  // flags
  put(out, method, 2);
  put(out, 0, 4); // time
  put(out, crc32(content.bytes), 4);
  const uint64_t size = content.bytes.size();
  put(out, isZip64 ? 0xffffffff : size, 4);
  put(out, isZip64 ? 0xffffffff : size, 4);
  std::string extra;
  if (isZip64) {
    put(extra, 1, 2);
    put(extra, isCentral ? 24 : 16, 2);
    put(extra, size, 8);
    put(extra, size, 8);
    if (isCentral)
      put(extra, offset, 8);
  }
  put(out, content.name.size(), 2);
  put(out, extra.size(), 2);
  if (isCentral) {
    out.append(2 + 2 + 2 + 4, 0); // comment, disk, attributes
    put(out, isZip64 ? 0xffffffff : offset, 4);
  }
  return out + content.name + extra;
}

inline std::string zip(const std::vector<Content> &contents,
                       bool isZip64 = false, uint16_t method = 0) {
  std::string out, directory;
  for (const Content &content : contents) {
    directory += header(0x02014b50, content, true, isZip64, out.size(), method);
    out += header(0x04034b50, content, false, isZip64, 0, method);
    out += content.bytes;
  }
  const uint64_t place = out.size();
  out += directory;
  if (isZip64) {
    const uint64_t end64 = out.size();
    put(out, 0x06064b50, 4);
    put(out, 44, 8);
    put(out, 45, 2);
    put(out, 45, 2);
    put(out, 0, 8);
    put(out, contents.size(), 8);
    put(out, contents.size(), 8);
    put(out, directory.size(), 8);
    put(out, place, 8);
    put(out, 0x07064b50, 4);
    put(out, 0, 4);
    put(out, end64, 8);
    put(out, 1, 4);
  }
  put(out, 0x06054b50, 4);
  put(out, 0, 4);
  put(out, contents.size(), 2);
  put(out, contents.size(), 2);
  put(out, directory.size(), 4);
  put(out, isZip64 ? 0xffffffff : place, 4);
  put(out, 0, 2);
  return out;
}

} // namespace monarch::test
