//===- Units.h - quantities as people write them --------------------------===//
//
// "80GiB", "3.35TB/s", "400Gb/s", "989TFLOP/s", "4us": a decimal number and a
// unit of the quantity's dimension. GB and GiB, Gb and GB differ. Values are
// exact integers in the base unit (bytes, bytes/s, FLOP/s, picoseconds); what
// is finer than that is rounded down.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace monarch::planner {

enum class Dimension : uint8_t { Size, Bandwidth, Rate, Time };

/// Nullopt: not a number with a unit of this dimension, negative, or too large.
std::optional<int64_t> parseQuantity(Dimension dimension,
                                     std::string_view text);
/// A bare decimal number times the base unit that `bareSuffix` names.
std::optional<int64_t> parseBareQuantity(Dimension dimension,
                                         std::string_view number);
/// What a key ends with when its number may stand bare: "_bytes",
/// "_bytes_per_second", "_flops_per_second", "_seconds".
std::string_view bareSuffix(Dimension dimension);
/// The legal units, for messages: "B, kB, MB, ...".
std::string unitsOf(Dimension dimension);

/// For people: "79.6 GiB", "4.50 ms"; three digits.
std::string formatBytes(int64_t bytes);
std::string formatPicoseconds(int64_t picoseconds);

} // namespace monarch::planner
