//===- Error.h - errors as values -----------------------------------------===//
//
// Every border of the project returns Expected<T>. An Error names what is
// wrong, where (module path and the user's source line, or a file), and how to
// fix it; its id is stable. Exit codes are those of the command line and
// frozen.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cassert>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace monarch {

enum class ExitCode : int {
  Ok = 0,
  Negative = 1,
  Usage = 2,
  BadInput = 3,
  Infeasible = 4,
  Unsupported = 5,
  Stale = 6,
  Limit = 7,
  RunFailed = 8,
  LostRank = 9,
  Internal = 70,
  Interrupted = 130
};

struct Error {
  /// "MP1004": 1xxx input, 2xxx plan and program, 3xxx planning, 4xxx running.
  std::string id;
  ExitCode code = ExitCode::Internal;
  std::string what;
  std::string where;
  std::string fix;
};

/// "error MP1004: what\n  at where\n  fix: fix".
std::string toString(const Error &error);

/// Several as one: id, code and fix of the first; `what` has a line for each,
/// with its place. There is at least one.
Error joined(const std::vector<Error> &errors);

/// A value or an Error.
template <typename T> class [[nodiscard]] Expected {
public:
  Expected(T value) : storage(std::in_place_index<0>, std::move(value)) {}
  Expected(Error error) : storage(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const { return storage.index() == 0; }
  T &operator*() {
    assert(*this);
    return std::get<0>(storage);
  }
  const T &operator*() const {
    assert(*this);
    return std::get<0>(storage);
  }
  T *operator->() { return &**this; }
  const T *operator->() const { return &**this; }
  const Error &error() const {
    assert(!*this);
    return std::get<1>(storage);
  }

private:
  std::variant<T, Error> storage;
};

} // namespace monarch
