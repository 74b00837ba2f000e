//===- Failure.cpp - the one cause that ends a job ------------------------===//
//
// See Failure.h.
//
//===----------------------------------------------------------------------===//
#include "runtime/comm/Failure.h"

#include <nlohmann/json.hpp>

namespace monarch::runtime {

static constexpr const char *failureKey = "failure";

std::string packError(const Error &error) {
  return nlohmann::json{{"id", error.id},
                        {"code", static_cast<int>(error.code)},
                        {"what", error.what},
                        {"where", error.where},
                        {"fix", error.fix}}
      .dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

std::optional<Error> unpackError(const std::string &text) {
  auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  for (const char *key : {"id", "what", "where", "fix"})
    if (!json.is_object() || !json.contains(key) || !json[key].is_string())
      return std::nullopt;
  if (!json.contains("code") || !json["code"].is_number_integer())
    return std::nullopt;
  return Error{json["id"], static_cast<ExitCode>(json["code"].get<int>()),
               json["what"], json["where"], json["fix"]};
}

Error reportFailure(JobStore &store, const Error &error) {
  auto first = store.setFirst(failureKey, packError(error));
  if (first)
    if (auto parsed = unpackError(*first))
      return *parsed;
  return error;
}

std::optional<Error> reportedFailure(JobStore &store) {
  auto values = store.peek({failureKey});
  if (!values || !(*values)[0])
    return std::nullopt;
  return unpackError(*(*values)[0]);
}

Error causeOf(JobStore &store, const Error &own,
              std::chrono::milliseconds patience) {
  auto text = store.get(failureKey, patience);
  if (text)
    if (auto parsed = unpackError(*text))
      return *parsed;
  return own;
}

} // namespace monarch::runtime
