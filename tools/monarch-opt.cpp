//===- monarch-opt.cpp - dialects and passes, for tests and developers ----===//

#include "compiler/analyze/Passes.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<monarch::aten::AtenDialect>();
  monarch::registerAnalyzePasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      argc, argv, "monarch-opt: dialects and passes of monarch-plan\n",
      registry));
}
