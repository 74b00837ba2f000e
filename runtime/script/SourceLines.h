//===- SourceLines.h - the user's lines behind TorchScript code -----------===//
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace monarch {

/// A record *.debug_pkl as (offset in the code, "model.py:12"), sorted; empty
/// where it has another form. Throws what LibTorch throws.
std::vector<std::pair<size_t, std::string>>
readSourceLines(const std::string &pickle);

} // namespace monarch
