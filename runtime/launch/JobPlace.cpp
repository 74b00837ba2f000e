//===- JobPlace.cpp - which rank of which job this process is -------------===//
//
// See JobPlace.h.
//
//===----------------------------------------------------------------------===//
#include "runtime/launch/JobPlace.h"

#include <fmt/format.h>

#include <charconv>

namespace monarch::runtime {

static Error badEnvironment(std::string what) {
  return {"MP4007", ExitCode::Usage, std::move(what), "environment",
          "start the ranks with `monarch-plan run` or `torchrun --no-python`"};
}

std::string attemptPrefix(const std::string &restartCount) {
  return "/worker/attempt_" + restartCount;
}

Expected<JobPlace> placeFromEnvironment(
    const std::function<const char *(const char *)> &variable) {
  std::optional<Error> error;
  auto text = [&](const char *name) {
    const char *value = variable(name);
    return std::string(value ? value : "");
  };
  auto number = [&](const char *name, int64_t low, int64_t high) -> int64_t {
    std::string value = text(name);
    int64_t parsed = 0;
    auto [end, failure] =
        std::from_chars(value.data(), value.data() + value.size(), parsed);
    bool isRight = failure == std::errc() &&
                   end == value.data() + value.size() && parsed >= low &&
                   parsed <= high;
    if (!isRight && !error)
      error = badEnvironment(
          value.empty() ? fmt::format("{} is not set", name)
                        : fmt::format("{} is '{}', not a number from {} to {}",
                                      name, value, low, high));
    return isRight ? parsed : low;
  };

  JobPlace place;
  place.errorFile = text("TORCHELASTIC_ERROR_FILE");
  if (variable(errorPipeVariable))
    place.errorPipe = static_cast<int>(number(errorPipeVariable, 0, 1 << 20));
  if (variable(progressFileVariable))
    place.progressFile =
        static_cast<int>(number(progressFileVariable, 0, 1 << 20));
  if (!variable("RANK") && !variable("WORLD_SIZE"))
    return error ? Expected<JobPlace>(*error) : place;
  place.worldSize = number("WORLD_SIZE", 1, 1 << 20);
  place.rank = number("RANK", 0, place.worldSize - 1);
  if (place.worldSize == 1)
    return error ? Expected<JobPlace>(*error) : place;
  place.store.host = text("MASTER_ADDR");
  if (place.store.host.empty() && !error)
    error = badEnvironment("MASTER_ADDR is not set");
  place.store.port = static_cast<int>(number("MASTER_PORT", 1, 65535));
  if (text("TORCHELASTIC_USE_AGENT_STORE") == "True") {
    std::string restarts = text("TORCHELASTIC_RESTART_COUNT");
    place.store.prefix = attemptPrefix(restarts.empty() ? "0" : restarts);
  } else {
    place.store.isServer = place.rank == 0;
  }
  if (error)
    return *error;
  return place;
}

} // namespace monarch::runtime
