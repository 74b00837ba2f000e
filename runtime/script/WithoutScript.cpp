//===- WithoutScript.cpp - a build that opens no TorchScript --------------===//
//
// In place of OpenScript.cpp where MONARCH_TORCHSCRIPT is off.
//
//===----------------------------------------------------------------------===//
#include "runtime/script/ScriptFile.h"

namespace monarch {

Expected<std::shared_ptr<const ScriptFile>>
ScriptFile::open(const std::string &path) {
  return Error{"MP1032", ExitCode::BadInput,
               "this is a TorchScript file, which this build does not open",
               path,
               "build with -DMONARCH_TORCHSCRIPT=ON, or export with "
               "torch.export"};
}

} // namespace monarch
