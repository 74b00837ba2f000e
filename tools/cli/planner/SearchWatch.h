//===- SearchWatch.h - long searches, as someone at a keyboard sees them --===//
//
// While one lives, SIGINT (Ctrl-C) ends the search with its best so far instead
// of the program, and stderr, where it is a terminal, shows how far the search
// is. A second SIGINT ends the program. Clocks decide when a line is shown,
// never what is found.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "planner/Planner.h"
#include "planner/choose/ChooseLayout.h"

#include <chrono>
#include <csignal>

namespace monarch::cli {

class SearchWatch {
public:
  /// `limit`: candidates that may be looked at; none: all.
  explicit SearchWatch(std::optional<int64_t> limit);
  ~SearchWatch();
  SearchWatch(const SearchWatch &) = delete;
  SearchWatch &operator=(const SearchWatch &) = delete;

  /// Whether to look further.
  bool goesOn(const planner::SearchProgress &progress);
  bool goesOn(const planner::PlanProgress &progress);

  /// Takes the line away; results are written after it.
  void clear();
  bool wasInterrupted() const;
  /// 130 after SIGINT.
  int exitCode(int code) const;
  /// A search that found nothing before SIGINT ends with 130 as well.
  Error error(Error error) const;

private:
  void show(const std::string &line);

  std::optional<int64_t> limit;
  bool isTerminal = false;
  size_t shown = 0;
  std::chrono::steady_clock::time_point next;
  struct sigaction former {};
};

} // namespace monarch::cli
