//===- Validators.h - numbers on the command line -------------------------===//
#pragma once

#include <CLI/CLI.hpp>

#include <limits>

namespace monarch::cli {

/// CLI11's own says a range of 300 digits.
inline CLI::Validator positive() {
  return CLI::Validator(
      [](std::string &text) {
        return CLI::PositiveNumber(text).empty()
                   ? std::string()
                   : "'" + text + "' is not a positive number";
      },
      "POSITIVE");
}

inline CLI::Validator notNegative() {
  return CLI::Validator(
      [](std::string &text) {
        double value = -1;
        return CLI::detail::lexical_cast(text, value) && value >= 0 &&
                       value < std::numeric_limits<double>::infinity()
                   ? std::string()
                   : "'" + text + "' is not a number from 0 up";
      },
      "NUMBER");
}

} // namespace monarch::cli
