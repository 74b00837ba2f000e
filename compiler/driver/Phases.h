//===- Phases.h - running phases over one module --------------------------===//
//
// What the driver's entry points share: a context whose diagnostics become an
// Error, passes, and dumps of the IR after each phase.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/driver/Driver.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"

namespace monarch {

class Phases {
public:
  /// Dumps are numbered from `first`.
  Phases(const DumpOptions &dump, int first);

  /// Verifies the module and writes it as N-NAME.mlir.
  std::optional<Error> finish(mlir::ModuleOp module, const std::string &name);
  /// `build` adds the passes.
  template <typename Build>
  std::optional<Error> run(mlir::ModuleOp module, Build build) {
    mlir::PassManager manager(&context);
    build(manager);
    if (mlir::failed(manager.run(module)))
      return diagnosed();
    return std::nullopt;
  }

  mlir::MLIRContext context;

private:
  Error diagnosed() const;

  std::string directory;
  int next;
  /// The first error that MLIR reported, with where.
  std::string message, place;
};

} // namespace monarch
