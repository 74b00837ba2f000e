//===- Memory.h - predicted and measured memory ---------------------------===//
#pragma once

#include "bench/ground_truth/Row.h"

namespace monarch::bench {

/// Prints errors by kind of measurement, and verdicts on what fits.
std::optional<Error> reportMemory(const std::string &path,
                                  const std::vector<Source> &sources,
                                  bool printsRows);

} // namespace monarch::bench
