//===- Sha256.h - content addresses ---------------------------------------===//
//
// SHA-256 (FIPS 180-4) as lower-case hexadecimal: the digests of graphs, plans
// and program files.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <string>
#include <string_view>

namespace monarch {

/// 64 hexadecimal digits.
std::string sha256(std::string_view bytes);

} // namespace monarch
