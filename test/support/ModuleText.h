//===- ModuleText.h - a module as text, for tests -------------------------===//
#pragma once

#include "mlir/IR/BuiltinOps.h"

namespace monarch::test {

/// With locations.
inline std::string textOf(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, mlir::OpPrintingFlags().enableDebugInfo());
  return text;
}

} // namespace monarch::test
