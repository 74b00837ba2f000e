//===- Report.h - what a run did ------------------------------------------===//
//
// `monarch.report/1` (docs/report.md): executed traffic and memory of each rank
// beside the predicted sums, losses, and the figures of --verify. Ranks hand
// their part to rank 0 as text, through the job's store.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/exec/Executor.h"
#include "runtime/exec/Verification.h"

namespace monarch::runtime {

struct RankReport {
  int64_t rank = 0;
  int stage = 0;
  std::vector<int64_t> coordinates;
  /// Of one step.
  Traffic traffic;
  int64_t peakTensorBytes = 0;
  std::vector<double> stepSeconds;
  /// Of the last step.
  std::map<std::string, double> segmentSeconds;
};

std::string writeRankReport(const RankReport &report);
Expected<RankReport> readRankReport(const std::string &text);

struct RunReport {
  std::vector<double> losses;
  std::vector<RankReport> ranks;
  std::optional<VerifyFigures> verify;
};

std::string writeReport(const RunReport &report, const Program &program);

/// MP4008 unless the ranks' traffic sums to what the program predicts.
std::optional<Error> checkTraffic(const std::vector<RankReport> &ranks,
                                  const Program &program);

/// Lines for people: one for each rank, then the figures of --verify.
std::string summaryOf(const RunReport &report);

} // namespace monarch::runtime
