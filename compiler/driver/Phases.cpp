//===- Phases.cpp - running phases over one module ------------------------===//

#include "compiler/driver/Phases.h"
#include "core/support/Files.h"

#include "mlir/IR/Verifier.h"

#include <filesystem>
#include <fmt/format.h>

using namespace mlir;

namespace monarch {

// Modules are small next to the start of a thread pool.
Phases::Phases(const DumpOptions &dump, int first)
    : context(MLIRContext::Threading::DISABLED), directory(dump.directory),
      next(first) {
  context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
    if (message.empty() &&
        diagnostic.getSeverity() == DiagnosticSeverity::Error) {
      message = diagnostic.str();
      llvm::raw_string_ostream(place) << diagnostic.getLocation();
    }
    return success();
  });
}

Error Phases::diagnosed() const {
  return {"MP2402", ExitCode::Internal,
          "the compiler made IR that is not valid: " + message, place,
          "report this with the output of --dump-phases"};
}

std::optional<Error> Phases::finish(ModuleOp module, const std::string &name) {
  const int number = next++;
  if (failed(verify(module)))
    return diagnosed();
  if (directory.empty())
    return std::nullopt;
  std::error_code code;
  std::filesystem::create_directories(directory, code);
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, OpPrintingFlags().enableDebugInfo());
  return writeFile(fmt::format("{}/{}-{}.mlir", directory, number, name), text);
}

} // namespace monarch
