//===- Parts.h - what importers share -------------------------------------===//
#pragma once

#include "planner/cluster/import/Import.h"
#include "planner/step/Machine.h"

namespace monarch::planner {

/// MP1105, bad input.
Error importError(std::string what, std::string where, std::string fix);

/// A document that extends PER_NODExDEVICE.
Json documentOf(const std::string &device, int64_t perNode,
                const std::string &source);

/// Links between all devices of a node, as found there.
struct NodeLinks {
  /// NVLinks of a device; 0: none, PCIe.
  int64_t nvlinks = 0;
  /// NVLink joins pairs alone.
  bool isPairwise = false;
};
void addLinks(const DeviceModel &device, int64_t perNode,
              const NodeLinks &links, Json &document);

std::vector<std::string> linesOf(std::string_view text);
std::vector<std::string> wordsOf(std::string_view text);
std::string trimmed(std::string_view text);
/// Decimal digits alone.
std::optional<int64_t> numberOf(std::string_view text);

} // namespace monarch::planner
