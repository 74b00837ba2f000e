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

} // namespace

int run(RunVerbOptions options, const Console &console) {
  std::optional<ScratchDirectory> scratch;
  if (fs::is_directory(options.program)) {
    if (!options.model.model.empty())
      return console.fail({"MP1802", ExitCode::Usage,
                           "a program directory is run without a model",
                           options.program,
                           "give --weights to read weights from a file"});
    options.run.directory = options.program;
  } else {
    if (options.model.model.empty())
      return console.fail({"MP1803", ExitCode::Usage,
                           "a plan needs the model that it is for",
                           options.program,
                           "write monarch-plan run PLAN MODEL, or give a "
                           "program directory"});
    scratch.emplace();
    if (scratch->directory.empty())
      return console.fail({"MP1804", ExitCode::Internal,
                           "cannot make a temporary directory",
                           fs::temp_directory_path().string(),
                           "set TMPDIR to a folder that can be written"});
    CompileVerbOptions compileOptions;
    compileOptions.plan = options.program;
    compileOptions.model = options.model;
    compileOptions.output = scratch->directory + "/program";
    if (const auto compiled = compileProgram(compileOptions); !compiled)
      return console.fail(compiled.error());
    options.run.directory = compileOptions.output;
    if (options.run.weights.empty() && !options.run.initSeed)
      options.run.weights = options.model.model;
  }
  const auto executable = runtime::findRankExecutable();
  if (!executable)
    return console.fail(executable.error());
  if (const auto error = runtime::runLocal(options.run, *executable))
    return console.fail(*error);
  return static_cast<int>(ExitCode::Ok);
}

} // namespace monarch::cli
