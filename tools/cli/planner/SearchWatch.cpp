#include "tools/cli/planner/SearchWatch.h"

#include <fmt/format.h>
#include <iostream>
#include <unistd.h>

namespace monarch::cli {

namespace {

volatile std::sig_atomic_t interrupts = 0;

void onInterrupt(int) { interrupts = 1; }

std::string bestText(double seconds) {
  return seconds > 0 ? fmt::format("best {:.4g} s", seconds)
                     : std::string("none that fits yet");
}

} // namespace

SearchWatch::SearchWatch(std::optional<int64_t> limit)
    : limit(limit), isTerminal(isatty(STDERR_FILENO) == 1) {
  interrupts = 0;
  sigaction(SIGINT, nullptr, &former);
  // Whoever runs this in the background has had it ignored.
  if (former.sa_handler == SIG_IGN)
    return;
  struct sigaction own {};
  own.sa_handler = onInterrupt;
  own.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &own, nullptr);
  // Some launchers start programs with it blocked; one that came meanwhile
  // counts.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigprocmask(SIG_UNBLOCK, &signals, nullptr);
}

SearchWatch::~SearchWatch() {
  clear();
  sigaction(SIGINT, &former, nullptr);
}

bool SearchWatch::goesOn(const planner::SearchProgress &progress) {
  show(fmt::format(
      "{} layouts bounded, {} priced, {}{}", progress.bounded, progress.priced,
      bestText(progress.bestSeconds),
      progress.bestSeconds > 0
          ? fmt::format(", gap {:.1f} % at most",
                        100 * std::max(0.0, 1 - progress.boundSeconds /
                                                    progress.bestSeconds))
          : std::string()));
  return !wasInterrupted() && (!limit || progress.bounded < *limit);
}

bool SearchWatch::goesOn(const planner::PlanProgress &progress) {
  constexpr double Picosecond = 1e-12;
  show(fmt::format(
      "{} of {} degrees looked at, {} plans priced, {}", progress.looked,
      progress.candidates, progress.priced,
      bestText(static_cast<double>(progress.bestPicoseconds) * Picosecond)));
  return !wasInterrupted() && (!limit || progress.looked < *limit);
}

void SearchWatch::clear() {
  if (shown == 0)
    return;
  std::cerr << '\r' << std::string(shown, ' ') << '\r' << std::flush;
  shown = 0;
}

bool SearchWatch::wasInterrupted() const { return interrupts != 0; }

int SearchWatch::exitCode(int code) const {
  return code == static_cast<int>(ExitCode::Ok) && wasInterrupted()
             ? static_cast<int>(ExitCode::Interrupted)
             : code;
}

Error SearchWatch::error(Error error) const {
  if (error.code == ExitCode::Limit && wasInterrupted())
    error.code = ExitCode::Interrupted;
  return error;
}

void SearchWatch::show(const std::string &line) {
  constexpr std::chrono::milliseconds Between(100);
  const auto now = std::chrono::steady_clock::now();
  if (!isTerminal || (shown > 0 && now < next))
    return;
  next = now + Between;
  std::cerr << '\r' << fmt::format("{:<{}}", line, shown) << std::flush;
  shown = std::max(shown, line.size());
}

} // namespace monarch::cli
