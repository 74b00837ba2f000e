//===- Interrupt.h - SIGINT and SIGTERM as an event -----------------------===//
//
// While a watch lives both signals end nothing by themselves: they are a flag,
// and a descriptor for poll(), so that what was begun is undone on the way out.
// A signal that was ignored stays so.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/support/Error.h"

#include <array>
#include <optional>
#include <signal.h>

namespace monarch::runtime {

/// Watches nest: the outermost one begins with no signal seen.
class InterruptWatch {
public:
  InterruptWatch();
  InterruptWatch(const InterruptWatch &) = delete;
  ~InterruptWatch();

  /// MP4015 once a signal has come.
  std::optional<Error> interrupted() const;
  /// Readable from then on.
  int descriptor() const;

private:
  static constexpr std::array signals{SIGINT, SIGTERM};
  struct sigaction before[signals.size()];
};

} // namespace monarch::runtime
