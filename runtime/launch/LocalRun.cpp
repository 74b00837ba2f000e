//===- LocalRun.cpp - the ranks of a program on this machine --------------===//
//
// See LocalRun.h. A rank's error pipe tells two things: its error, if it writes
// one, and its end, when the pipe closes; so the launcher sleeps in poll().
//
//===----------------------------------------------------------------------===//
#include "runtime/launch/LocalRun.h"

#include "core/program/Verify.h"
#include "runtime/comm/Communicator.h"
#include "runtime/comm/Failure.h"
#include "runtime/exec/Progress.h"
#include "runtime/launch/Interrupt.h"
#include "runtime/launch/JobPlace.h"
#include "runtime/launch/Monitor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace monarch::runtime {

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

/// For ranks to end by themselves after the first failure.
constexpr std::chrono::seconds grace{3};

Error launchError(const std::string &what) {
  return {"MP4014", ExitCode::RunFailed,
          fmt::format("{}: {}", what, std::strerror(errno)), "", ""};
}

struct Child {
  int64_t rank = 0;
  pid_t pid = -1;
  int pipe = -1;
  std::string text;
  std::optional<SharedProgress> progress;
  bool isRunning() const { return pid > 0; }
};

/// Everything exec needs, made before fork: the child may not allocate.
class ExecImage {
public:
  ExecImage(const std::string &path, const std::vector<std::string> &arguments,
            const std::vector<std::pair<std::string, std::string>> &variables)
      : path(path) {
    texts.push_back(path);
    texts.insert(texts.end(), arguments.begin(), arguments.end());
    size_t argumentCount = texts.size();
    for (char **entry = environ; *entry; ++entry) {
      std::string_view text = *entry;
      std::string_view name = text.substr(0, text.find('='));
      if (std::none_of(variables.begin(), variables.end(),
                       [&](const auto &v) { return v.first == name; }))
        texts.emplace_back(text);
    }
    for (const auto &[name, value] : variables)
      texts.push_back(name + "=" + value);
    for (size_t i = 0; i < texts.size(); ++i)
      (i < argumentCount ? argv : envp).push_back(texts[i].data());
    argv.push_back(nullptr);
    envp.push_back(nullptr);
  }
  void exec() { ::execve(path.c_str(), argv.data(), envp.data()); }

private:
  std::string path;
  std::vector<std::string> texts;
  std::vector<char *> argv, envp;
};

class LocalJob {
public:
  LocalJob(const RunOptions &options, std::string executable,
           const Program &program)
      : options(options), executable(std::move(executable)), program(program),
        ranks(program.worldSize()) {}
  ~LocalJob() { killAll(); }

  std::optional<Error> run() {
    StoreAddress address;
    address.isServer = true;
    address.prefix = attemptPrefix("0");
    auto opened = JobStore::open(address);
    if (!opened)
      return opened.error();
    store = *opened;
    for (int64_t rank = 0; rank < ranks; ++rank)
      if (auto error = start(rank))
        return error;
    while (runningCount() > 0) {
      waitForNews();
      if (auto error = watch.interrupted()) {
        killAll();
        return error;
      }
      if (cause && Clock::now() >= deadline)
        killAll();
    }
    return cause;
  }

private:
  int64_t runningCount() const {
    return std::count_if(children.begin(), children.end(),
                         [](const Child &c) { return c.isRunning(); });
  }

  std::optional<Error> start(int64_t rank) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
      return launchError("cannot make a pipe");
    std::optional<SharedProgress> progress = SharedProgress::create();
    auto variables = variablesOf(rank, ends[1]);
    int progressFile = progress ? progress->descriptor() : -1;
    if (progress)
      variables.emplace_back(progressFileVariable,
                             std::to_string(progressFile));
    ExecImage image(executable, argumentsOf(options), variables);
    pid_t parent = ::getpid();
    pid_t pid = ::fork();
    if (pid == 0) {
      // The ranks die with the launcher, whatever kills it.
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent)
        ::_exit(static_cast<int>(ExitCode::RunFailed));
      ::fcntl(ends[1], F_SETFD, 0);
      if (progressFile >= 0)
        ::fcntl(progressFile, F_SETFD, 0);
      image.exec();
      ::_exit(127);
    }
    ::close(ends[1]);
    if (pid < 0) {
      ::close(ends[0]);
      return launchError("cannot start a rank");
    }
    children.push_back({rank, pid, ends[0], "", std::move(progress)});
    return std::nullopt;
  }

  std::vector<std::pair<std::string, std::string>>
  variablesOf(int64_t rank, int pipeEnd) const {
    std::vector<std::pair<std::string, std::string>> variables{
        {"RANK", std::to_string(rank)},
        {"LOCAL_RANK", std::to_string(rank)},
        {"WORLD_SIZE", std::to_string(ranks)},
        {"LOCAL_WORLD_SIZE", std::to_string(ranks)},
        {"MASTER_ADDR", "127.0.0.1"},
        {"MASTER_PORT", std::to_string(store->port())},
        {"TORCHELASTIC_USE_AGENT_STORE", "True"},
        {"TORCHELASTIC_RESTART_COUNT", "0"},
        {errorPipeVariable, std::to_string(pipeEnd)}};
    if (!std::getenv("OMP_NUM_THREADS")) {
      int64_t cores = std::thread::hardware_concurrency();
      variables.emplace_back(
          "OMP_NUM_THREADS",
          std::to_string(std::max<int64_t>(1, cores / ranks)));
    }
    return variables;
  }

  void waitForNews() {
    std::vector<pollfd> watched;
    std::vector<Child *> of;
    for (Child &child : children)
      if (child.isRunning()) {
        watched.push_back({child.pipe, POLLIN, 0});
        of.push_back(&child);
      }
    const size_t pipes = watched.size();
    watched.push_back({watch.descriptor(), POLLIN, 0});
    int timeout = -1;
    if (cause)
      timeout = static_cast<int>(std::max<int64_t>(
          0,
          std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now())
              .count()));
    if (::poll(watched.data(), watched.size(), timeout) < 0)
      return; // a signal
    for (size_t i = 0; i < pipes; ++i)
      if (watched[i].revents)
        readFrom(*of[i]);
  }

  void readFrom(Child &child) {
    char buffer[4096];
    ssize_t count = ::read(child.pipe, buffer, sizeof(buffer));
    if (count > 0) {
      child.text.append(buffer, static_cast<size_t>(count));
      return;
    }
    ended(child);
  }

  /// Its pipe is closed: it has exited or is about to.
  void ended(Child &child) {
    int status = 0;
    ::waitpid(child.pid, &status, 0);
    ::close(child.pipe);
    child.pid = child.pipe = -1;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
      return;
    std::optional<Error> error = unpackError(child.text);
    if (!error) {
      error = lostRank(WIFSIGNALED(status)
                           ? fmt::format("killed by signal {} ({})",
                                         WTERMSIG(status),
                                         ::strsignal(WTERMSIG(status)))
                           : fmt::format("exited with {} without a word",
                                         WEXITSTATUS(status)));
      error->where = fmt::format("rank {}, {}", child.rank, placeOf(child));
    }
    if (cause)
      return;
    cause = reportFailure(*store, *error);
    deadline = Clock::now() + grace;
  }

  std::string placeOf(Child &child) {
    if (!child.progress)
      return lastSign(*store, child.rank);
    return textOf(child.progress->progress(),
                  program.roles[child.rank / program.mesh.size()]);
  }

  void killAll() {
    for (Child &child : children)
      if (child.isRunning())
        ::kill(child.pid, SIGKILL);
    for (Child &child : children)
      if (child.isRunning()) {
        ::waitpid(child.pid, nullptr, 0);
        ::close(child.pipe);
        child.pid = child.pipe = -1;
      }
  }

  const RunOptions &options;
  std::string executable;
  const Program &program;
  int64_t ranks;
  InterruptWatch watch;
  std::shared_ptr<JobStore> store;
  std::vector<Child> children;
  std::optional<Error> cause;
  Clock::time_point deadline;
};

} // namespace

Expected<std::string> findRankExecutable() {
  const std::string name = "monarch-run";
  std::error_code error;
  fs::path own = fs::read_symlink("/proc/self/exe", error);
  std::vector<fs::path> candidates{own.parent_path() / name};
  std::string paths = std::getenv("PATH") ? std::getenv("PATH") : "";
  for (size_t begin = 0; begin <= paths.size();) {
    size_t end = std::min(paths.find(':', begin), paths.size());
    candidates.push_back(fs::path(paths.substr(begin, end - begin)) / name);
    begin = end + 1;
  }
  for (const fs::path &candidate : candidates)
    if (::access(candidate.c_str(), X_OK) == 0)
      return candidate.string();
  return Error{"MP4014", ExitCode::RunFailed, "monarch-run is not found",
               own.parent_path(),
               "keep it beside this executable, or on the PATH"};
}

/// What a run writes at its end must have a folder to go to at its start.
static std::optional<Error> checkOutput(const std::string &path) {
  fs::path folder = fs::path(path).parent_path();
  if (folder.empty() || fs::is_directory(folder))
    return std::nullopt;
  return Error{"MP1902", ExitCode::BadInput, "there is no such folder",
               folder.string(), "make it first"};
}

std::optional<Error> runLocal(const RunOptions &options,
                              const std::string &rankExecutable) {
  for (const std::string &path : {options.report, options.saveWeights})
    if (auto error = checkOutput(path))
      return error;
  quietTransports();
  auto program = readProgram(options.directory);
  if (!program)
    return program.error();
  std::vector<Error> violations = verify(*program);
  if (!violations.empty())
    return joined(violations);
  return LocalJob(options, rankExecutable, *program).run();
}

} // namespace monarch::runtime
