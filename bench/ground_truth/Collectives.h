//===- Collectives.h - predicted and measured collectives -----------------===//
#pragma once

#include "bench/ground_truth/Predict.h"

namespace monarch::bench {

/// Prints errors by algorithm, placement and size of the message.
std::optional<Error> reportCollectives(const std::string &path);

} // namespace monarch::bench
