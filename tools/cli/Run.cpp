#include "core/support/Files.h"
#include "runtime/launch/Interrupt.h"
#include "runtime/launch/LocalRun.h"
#include "tools/cli/CompileProgram.h"

#include <filesystem>
#include <unistd.h>

namespace monarch::cli {
namespace {

namespace fs = std::filesystem;

/// A directory of this process that goes when the run ends.
class ScratchDirectory {
public:
  ScratchDirectory() {
    std::string name =
        (fs::temp_directory_path() / "monarch-plan-XXXXXX").string();
    if (mkdtemp(name.data()))
      directory = name;
  }
  ~ScratchDirectory() {
    std::error_code ignored;
    if (!directory.empty())
      fs::remove_all(directory, ignored);
  }
  std::string directory;
};

/// What is written to stdout goes to stderr until the end of the scope: a
/// document has stdout for itself, whatever ranks print.
class StdoutToStderr {
public:
  StdoutToStderr() : saved(::dup(STDOUT_FILENO)) {
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
  }
  ~StdoutToStderr() {
    ::dup2(saved, STDOUT_FILENO);
    ::close(saved);
  }

private:
  int saved;
};

/// Program files and weights of a plan and its model.
std::optional<Error> compilePlan(RunVerbOptions &options,
                                 const std::string &directory) {
  if (options.model.model.empty())
    return Error{"MP1803", ExitCode::Usage,
                 "a plan needs the model that it is for", options.program,
                 "write monarch-plan run PLAN MODEL, or give a program "
                 "directory"};
  CompileVerbOptions compileOptions;
  compileOptions.plan = options.program;
  compileOptions.model = options.model;
  compileOptions.output = directory + "/program";
  if (const auto compiled = compileProgram(compileOptions); !compiled)
    return compiled.error();
  options.run.directory = compileOptions.output;
  if (options.run.weights.empty() && !options.run.initSeed)
    options.run.weights = options.model.model;
  return std::nullopt;
}

std::optional<Error> prepare(RunVerbOptions &options,
                             const std::string &scratch) {
  if (!fs::exists(options.program))
    return Error{"MP1805", ExitCode::BadInput, "no such file or directory",
                 options.program,
                 "give a program directory, or a plan and its model"};
  if (!fs::is_directory(options.program))
    return compilePlan(options, scratch);
  if (!options.model.model.empty())
    return Error{"MP1802", ExitCode::Usage,
                 "a program directory is run without a model", options.program,
                 "give --weights to read weights from a file"};
  options.run.directory = options.program;
  return std::nullopt;
}

} // namespace

int run(RunVerbOptions options, const Console &console) {
  // From before there is anything to clean up.
  const runtime::InterruptWatch watch;
  const ScratchDirectory scratch;
  if (scratch.directory.empty())
    return console.fail({"MP1804", ExitCode::Internal,
                         "cannot make a temporary directory",
                         fs::temp_directory_path().string(),
                         "set TMPDIR to a folder that can be written"});
  if (const auto error = prepare(options, scratch.directory))
    return console.fail(*error);
  if (const auto error = watch.interrupted())
    return console.fail(*error);
  const auto executable = runtime::findRankExecutable();
  if (!executable)
    return console.fail(executable.error());
  if (console.format == Format::Text) {
    if (const auto error = runtime::runLocal(options.run, *executable))
      return console.fail(*error);
    return static_cast<int>(ExitCode::Ok);
  }
  // The document is the report.
  if (options.run.report.empty())
    options.run.report = scratch.directory + "/report.json";
  std::optional<Error> error;
  {
    const StdoutToStderr redirected;
    error = runtime::runLocal(options.run, *executable);
  }
  if (error)
    return console.fail(*error);
  const auto text = readFile(options.run.report);
  if (!text)
    return console.fail(text.error());
  console.file(*text);
  return static_cast<int>(ExitCode::Ok);
}

} // namespace monarch::cli
