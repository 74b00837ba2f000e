//===- EndOfJob.cpp - how a rank's process tells why it ends --------------===//
//
// See EndOfJob.h.
//
//===----------------------------------------------------------------------===//
#include "runtime/launch/EndOfJob.h"

#include "core/support/Files.h"
#include "runtime/comm/Failure.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <unistd.h>

namespace monarch::runtime {

std::string causeLine(const Error &error) {
  std::string text = error.id + ": ";
  if (!error.where.empty())
    text += error.where + ": ";
  return text + error.what;
}

static void writeAll(int descriptor, const std::string &text) {
  size_t written = 0;
  while (written < text.size()) {
    ssize_t count =
        ::write(descriptor, text.data() + written, text.size() - written);
    if (count <= 0)
      return;
    written += static_cast<size_t>(count);
  }
}

/// The format of torch.distributed.elastic's error handler; torchrun takes the
/// earliest time stamp for the root cause.
static void writeErrorFile(const std::string &path, const Error &error) {
  auto now = std::chrono::duration_cast<std::chrono::seconds>(
      std::chrono::system_clock::now().time_since_epoch());
  nlohmann::json json;
  json["message"]["message"] = causeLine(error);
  json["message"]["extraInfo"]["py_callstack"] = causeLine(error);
  json["message"]["extraInfo"]["timestamp"] = std::to_string(now.count());
  // Nobody is left to tell if this fails; the exit code still says it.
  (void)writeFile(
      path, json.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace));
}

void endJob(const JobPlace &place, const Error &error) {
  static std::atomic<bool> isEnding{false};
  if (isEnding.exchange(true))
    while (true)
      ::pause();
  std::fflush(stdout);
  if (!place.errorFile.empty())
    writeErrorFile(place.errorFile, error);
  if (place.errorPipe >= 0)
    writeAll(place.errorPipe, packError(error));
  else
    writeAll(STDERR_FILENO, toString(error) + "\n");
  ::_exit(static_cast<int>(error.code));
}

} // namespace monarch::runtime
