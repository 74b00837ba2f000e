//===- Pins.cpp - what the user fixes -------------------------------------===//
#include "planner/search/Pins.h"

#include <array>
#include <fmt/format.h>

namespace monarch::planner {

namespace {

Error refused(ExitCode code, std::string what, std::string fix) {
  return Error{"MP3101", code, std::move(what), "--fix", std::move(fix)};
}

std::optional<int64_t> positiveNumber(std::string_view text) {
  if (text.empty() || text.size() > 12 ||
      text.find_first_not_of("0123456789") != std::string_view::npos)
    return std::nullopt;
  int64_t value = std::stoll(std::string(text));
  return value >= 1 ? std::optional(value) : std::nullopt;
}

/// Keys of later versions, with the one value that means what is done now.
struct Reserved {
  std::string_view key;
  std::string_view neutral;
};
constexpr std::array<Reserved, 7> ReservedKeys = {{{"sp", "1"},
                                                   {"cp", "1"},
                                                   {"ep", "1"},
                                                   {"vpp", "1"},
                                                   {"dp_shard", "1"},
                                                   {"zero", "0"},
                                                   {"recompute", "none"}}};

std::optional<Error> setDegree(std::string_view key, std::string_view text,
                               std::optional<int64_t> &pin) {
  std::optional<int64_t> value = positiveNumber(text);
  if (!value)
    return refused(ExitCode::Usage,
                   fmt::format("{}={} is not a positive number", key, text),
                   fmt::format("write {}=N", key));
  if (pin && *pin != *value)
    return refused(
        ExitCode::Usage,
        fmt::format("{} is fixed twice, to {} and {}", key, *pin, *value),
        "fix it once");
  pin = value;
  return std::nullopt;
}

std::optional<Error> setSchedule(std::string_view text, Pins &pins) {
  for (ScheduleKind kind : {ScheduleKind::OneFOneB, ScheduleKind::GPipe})
    if (text == toString(kind)) {
      if (pins.schedule && *pins.schedule != kind)
        return refused(ExitCode::Usage, "schedule is fixed twice",
                       "fix it once");
      pins.schedule = kind;
      return std::nullopt;
    }
  return refused(ExitCode::Unsupported,
                 fmt::format("schedule={} is not supported", text),
                 "schedules are 1f1b and gpipe");
}

std::optional<Error> setMasterWeights(std::string_view text, Pins &pins) {
  if (text != "float32" && text != "none")
    return refused(ExitCode::Unsupported,
                   fmt::format("master_weights={} is not supported", text),
                   "master weights are float32 or none");
  bool value = text == "float32";
  if (pins.masterWeights && *pins.masterWeights != value)
    return refused(ExitCode::Usage, "master_weights is fixed twice",
                   "fix it once");
  pins.masterWeights = value;
  return std::nullopt;
}

std::optional<Error> addPin(std::string_view key, std::string_view value,
                            Pins &pins) {
  if (key == "dp")
    return setDegree(key, value, pins.dp);
  if (key == "tp")
    return setDegree(key, value, pins.tp);
  if (key == "pp")
    return setDegree(key, value, pins.pp);
  if (key == "micro_batch")
    return setDegree(key, value, pins.microBatch);
  if (key == "schedule")
    return setSchedule(value, pins);
  if (key == "master_weights")
    return setMasterWeights(value, pins);
  for (const Reserved &reserved : ReservedKeys)
    if (key == reserved.key) {
      if (value == reserved.neutral)
        return std::nullopt;
      return refused(
          ExitCode::Unsupported,
          fmt::format("{}={} is not supported", key, value),
          fmt::format("leave it out, or write {}={}", key, reserved.neutral));
    }
  return refused(ExitCode::Usage, fmt::format("\"{}\" cannot be fixed", key),
                 "keys are dp, tp, pp, micro_batch, schedule, master_weights, "
                 "zero, recompute");
}

} // namespace

std::optional<Error> addPins(std::string_view text, Pins &pins) {
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = std::min(text.find(',', begin), text.size());
    std::string_view item = text.substr(begin, end - begin);
    begin = end + 1;
    size_t equals = item.find('=');
    if (equals == std::string_view::npos)
      return refused(ExitCode::Usage,
                     fmt::format("\"{}\" is not of the form key=value", item),
                     "write as --fix dp=2,tp=2");
    if (std::optional<Error> error =
            addPin(item.substr(0, equals), item.substr(equals + 1), pins))
      return error;
  }
  return std::nullopt;
}

} // namespace monarch::planner
