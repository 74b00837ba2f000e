//===- Units.cpp - quantities as people write them ------------------------===//
//
// Decimal arithmetic on integers: a number is digits and a power of ten, a unit
// is a fraction of integers, so that "3.35TB/s" is the same on every machine.
//
//===----------------------------------------------------------------------===//
#include "planner/cluster/Units.h"

#include <array>
#include <fmt/format.h>
#include <limits>
#include <span>

namespace monarch::planner {

namespace {

/// base units = number * numerator / denominator
struct Unit {
  std::string_view name;
  int64_t numerator;
  int64_t denominator;
};

constexpr int64_t K = 1000, M = K * K, G = M * K, T = G * K, P = T * K;
constexpr int64_t Ki = 1024, Mi = Ki * Ki, Gi = Mi * Ki, Ti = Gi * Ki;

constexpr std::array<Unit, 9> SizeUnits = {{{"B", 1, 1},
                                            {"kB", K, 1},
                                            {"MB", M, 1},
                                            {"GB", G, 1},
                                            {"TB", T, 1},
                                            {"KiB", Ki, 1},
                                            {"MiB", Mi, 1},
                                            {"GiB", Gi, 1},
                                            {"TiB", Ti, 1}}};
constexpr std::array<Unit, 12> BandwidthUnits = {{{"B/s", 1, 1},
                                                  {"kB/s", K, 1},
                                                  {"MB/s", M, 1},
                                                  {"GB/s", G, 1},
                                                  {"TB/s", T, 1},
                                                  {"MiB/s", Mi, 1},
                                                  {"GiB/s", Gi, 1},
                                                  {"TiB/s", Ti, 1},
                                                  {"kb/s", K, 8},
                                                  {"Mb/s", M, 8},
                                                  {"Gb/s", G, 8},
                                                  {"Tb/s", T, 8}}};
constexpr std::array<Unit, 5> RateUnits = {{{"FLOP/s", 1, 1},
                                            {"MFLOP/s", M, 1},
                                            {"GFLOP/s", G, 1},
                                            {"TFLOP/s", T, 1},
                                            {"PFLOP/s", P, 1}}};
constexpr std::array<Unit, 5> TimeUnits = {
    {{"s", T, 1}, {"ms", G, 1}, {"us", M, 1}, {"ns", K, 1}, {"ps", 1, 1}}};

std::span<const Unit> unitTable(Dimension dimension) {
  switch (dimension) {
  case Dimension::Size:
    return SizeUnits;
  case Dimension::Bandwidth:
    return BandwidthUnits;
  case Dimension::Rate:
    return RateUnits;
  case Dimension::Time:
    return TimeUnits;
  }
  return {};
}

/// mantissa / scale
struct Decimal {
  int64_t mantissa = 0;
  int64_t scale = 1;
};

/// digits [ '.' digits ] [ 'e' sign digits ], of at most 18 digits in all.
std::optional<Decimal> parseDecimal(std::string_view text) {
  Decimal result;
  int digits = 0;
  size_t at = 0;
  auto readDigits = [&](bool fraction) {
    size_t begin = at;
    for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
      if (++digits > 18)
        return false;
      result.mantissa = result.mantissa * 10 + (text[at] - '0');
      result.scale *= fraction ? 10 : 1;
    }
    return at > begin;
  };
  if (!readDigits(false))
    return std::nullopt;
  if (at < text.size() && text[at] == '.') {
    ++at;
    if (!readDigits(true))
      return std::nullopt;
  }
  if (at == text.size())
    return result;
  if (text[at++] != 'e' || at == text.size())
    return std::nullopt;
  bool negative = text[at] == '-';
  if (negative || text[at] == '+')
    ++at;
  int exponent = 0;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at)
    if ((exponent = exponent * 10 + (text[at] - '0')) > 18)
      return std::nullopt;
  if (at != text.size())
    return std::nullopt;
  for (; exponent > 0; --exponent) {
    int64_t &grows = negative ? result.scale : result.mantissa;
    if (grows > std::numeric_limits<int64_t>::max() / 10)
      return std::nullopt;
    grows *= 10;
  }
  return result;
}

std::optional<int64_t> scaled(const Decimal &number, const Unit &unit) {
  __int128 value = static_cast<__int128>(number.mantissa) * unit.numerator /
                   (static_cast<__int128>(number.scale) * unit.denominator);
  if (value > std::numeric_limits<int64_t>::max())
    return std::nullopt;
  return static_cast<int64_t>(value);
}

} // namespace

std::optional<int64_t> parseQuantity(Dimension dimension,
                                     std::string_view text) {
  size_t end = text.find_first_not_of("0123456789.");
  if (end == 0 || end == std::string_view::npos)
    return std::nullopt;
  std::string_view unitText = text.substr(end);
  while (!unitText.empty() && unitText.front() == ' ')
    unitText.remove_prefix(1);
  std::optional<Decimal> number = parseDecimal(text.substr(0, end));
  if (!number)
    return std::nullopt;
  for (const Unit &unit : unitTable(dimension))
    if (unit.name == unitText)
      return scaled(*number, unit);
  return std::nullopt;
}

std::optional<int64_t> parseBareQuantity(Dimension dimension,
                                         std::string_view number) {
  std::optional<Decimal> decimal = parseDecimal(number);
  if (!decimal)
    return std::nullopt;
  // The first unit of a table is the one that the bare suffix names.
  return scaled(*decimal, unitTable(dimension).front());
}

std::string_view bareSuffix(Dimension dimension) {
  switch (dimension) {
  case Dimension::Size:
    return "_bytes";
  case Dimension::Bandwidth:
    return "_bytes_per_second";
  case Dimension::Rate:
    return "_flops_per_second";
  case Dimension::Time:
    return "_seconds";
  }
  return "";
}

std::string unitsOf(Dimension dimension) {
  std::string text;
  for (const Unit &unit : unitTable(dimension)) {
    if (!text.empty())
      text += ", ";
    text += unit.name;
  }
  return text;
}

namespace {

std::string threeDigits(double value, std::string_view unit) {
  int decimals = value < 10 ? 2 : value < 100 ? 1 : 0;
  return fmt::format("{:.{}f} {}", value, decimals, unit);
}

} // namespace

std::string formatBytes(int64_t bytes) {
  if (bytes < Ki)
    return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  if (bytes < Mi)
    return threeDigits(value / Ki, "KiB");
  if (bytes < Gi)
    return threeDigits(value / Mi, "MiB");
  if (bytes < Ti)
    return threeDigits(value / Gi, "GiB");
  return threeDigits(value / Ti, "TiB");
}

std::string formatPicoseconds(int64_t picoseconds) {
  double value = static_cast<double>(picoseconds);
  if (picoseconds < M)
    return threeDigits(value / K, "ns");
  if (picoseconds < G)
    return threeDigits(value / M, "us");
  if (picoseconds < T)
    return threeDigits(value / G, "ms");
  return threeDigits(value / T, "s");
}

} // namespace monarch::planner
