//===- RecognizeFile.h - what a file is that is no .pt2 -------------------===//
//
// The most common mistakes get their own words and a way on.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/support/Zip.h"

namespace monarch {

/// Of a file that does not begin as a ZIP archive; `head`: its first bytes, 64
/// if there are as many.
Error notAnArchive(const std::string &path, std::string_view head);
/// A module of torch.jit.save.
bool isTorchScript(const ZipArchive &archive);
/// Of an archive without an exported program.
Error notAProgram(const ZipArchive &archive);

} // namespace monarch
