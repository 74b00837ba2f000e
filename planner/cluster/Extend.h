//===- Extend.h - a cluster file that says only what differs --------------===//
//
// `"extends": "2xp5.48xlarge"`: the preset's document, with what the file says
// laid over it. Devices and levels are matched by name, nodes by place, other
// objects field by field; "memory_bytes" takes the place of "memory". Sizes of
// levels follow the counts where the file does not give them. The result is
// whole: it names what it extends, and what the file itself said, under
// "provenance".
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/support/Json.h"

namespace monarch::planner {

/// The document itself where it extends nothing. Problems, as "/levels/0: ...",
/// are added to `problems`; the error is that of an unknown preset.
Expected<Json> extended(const Json &document,
                        std::vector<std::string> &problems);

} // namespace monarch::planner
