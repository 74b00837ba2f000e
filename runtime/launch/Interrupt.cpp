//===- Interrupt.cpp - SIGINT and SIGTERM as an event ---------------------===//
//
// See Interrupt.h. A handler may write to a pipe, so no signal falls between a
// look at the flag and the sleep in poll().
//
//===----------------------------------------------------------------------===//
#include "runtime/launch/Interrupt.h"

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace monarch::runtime {

namespace {

volatile sig_atomic_t seen = 0;
int depth = 0;
int ends[2] = {-1, -1};

void onSignal(int) {
  const int before = errno;
  seen = 1;
  // A full pipe is readable, too.
  [[maybe_unused]] ssize_t count = ::write(ends[1], "!", 1);
  errno = before;
}

} // namespace

InterruptWatch::InterruptWatch() {
  if (depth++ == 0) {
    seen = 0;
    if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
      ends[0] = ends[1] = -1; // poll() skips it
  }
  struct sigaction watch = {};
  watch.sa_handler = onSignal;
  for (size_t i = 0; i < signals.size(); ++i) {
    ::sigaction(signals[i], nullptr, &before[i]);
    if (before[i].sa_handler != SIG_IGN)
      ::sigaction(signals[i], &watch, nullptr);
  }
}

InterruptWatch::~InterruptWatch() {
  for (size_t i = 0; i < signals.size(); ++i)
    ::sigaction(signals[i], &before[i], nullptr);
  if (--depth > 0)
    return;
  for (int &end : ends) {
    if (end >= 0)
      ::close(end);
    end = -1;
  }
}

std::optional<Error> InterruptWatch::interrupted() const {
  if (!seen)
    return std::nullopt;
  return Error{"MP4015", ExitCode::Interrupted, "interrupted", "", ""};
}

int InterruptWatch::descriptor() const { return ends[0]; }

} // namespace monarch::runtime
