//===- Philox.h - random bits by counter ----------------------------------===//
//
// Philox-4x32-10 (Salmon et al., SC 2011). Element e of op `stream` in step
// `step` under `seed` is lane e % 4 of
//   philox(key = seed, counter = (e / 4 : 64 bits, stream : 32, step : 32)),
// so a mask does not depend on which rank makes which part of it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <array>
#include <cstdint>

namespace monarch {

struct PhiloxStream {
  uint64_t seed = 0;
  uint32_t stream = 0;
  uint32_t step = 0;

  /// The words of elements 4 * block to 4 * block + 3.
  std::array<uint32_t, 4> operator()(uint64_t block) const {
    auto low = [](uint64_t x) { return static_cast<uint32_t>(x); };
    auto high = [](uint64_t x) { return static_cast<uint32_t>(x >> 32); };
    std::array<uint32_t, 4> c = {low(block), high(block), stream, step};
    uint32_t key0 = low(seed), key1 = high(seed);
    for (int round = 0; round < 10; ++round) {
      uint64_t product0 = uint64_t{0xd2511f53} * c[0];
      uint64_t product1 = uint64_t{0xcd9e8d57} * c[2];
      c = {high(product1) ^ c[1] ^ key0, low(product1),
           high(product0) ^ c[3] ^ key1, low(product0)};
      key0 += 0x9e3779b9;
      key1 += 0xbb67ae85;
    }
    return c;
  }
};

/// An element is kept iff its word is at least floor(p * 2^32), for p < 1: an
/// integer comparison, the same on every device.
inline uint32_t dropThreshold(double p) {
  return static_cast<uint32_t>(p * 4294967296.0);
}

} // namespace monarch
