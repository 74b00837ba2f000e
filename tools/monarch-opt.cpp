//===- monarch-opt.cpp - dialects and passes, for tests and developers ----===//

#include "compiler/analyze/Passes.h"
#include "compiler/partition/Passes.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<monarch::aten::AtenDialect, monarch::dist::DistDialect>();
  monarch::registerAnalyzePasses();
  monarch::registerPartitionPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      argc, argv, "monarch-opt: dialects and passes of monarch-plan\n",
      registry));
}
