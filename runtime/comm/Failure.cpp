//===- Failure.cpp - the one cause that ends a job ------------------------===//
//
// See Failure.h.
//
//===----------------------------------------------------------------------===//
#include "runtime/comm/Failure.h"

#include <nlohmann/json.hpp>

namespace monarch::runtime {

static constexpr const char *failureKey = "failure";

static std::string writeError(const Error &error) {
  return nlohmann::json{{"id", error.id},
                        {"code", static_cast<int>(error.code)},
                        {"what", error.what},
                        {"where", error.where},
                        {"fix", error.fix}}
      .dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

/// Nothing when the text was not written by `writeError`.
static std::optional<Error> readError(const std::string &text) {
  auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object())
    return std::nullopt;
  return Error{
      json.value("id", ""), static_cast<ExitCode>(json.value("code", 70)),
      json.value("what", ""), json.value("where", ""), json.value("fix", "")};
}

Error reportFailure(JobStore &store, const Error &error) {
  auto first = store.setFirst(failureKey, writeError(error));
  if (first)
    if (auto parsed = readError(*first))
      return *parsed;
  return error;
}

std::optional<Error> reportedFailure(JobStore &store) {
  auto values = store.peek({failureKey});
  if (!values || !(*values)[0])
    return std::nullopt;
  return readError(*(*values)[0]);
}

Error causeOf(JobStore &store, const Error &own,
              std::chrono::milliseconds patience) {
  auto text = store.get(failureKey, patience);
  if (text)
    if (auto parsed = readError(*text))
      return *parsed;
  return own;
}

} // namespace monarch::runtime
